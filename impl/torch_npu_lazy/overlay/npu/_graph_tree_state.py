"""The counter of marked steps, which graph trees read: exact whichever threads mark, and usable in a forked child."""

from __future__ import annotations

from _thread import RLock

from torch_npu_lazy.core import locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Counter(type):
    """Lets `MarkStepBox.mark_step_counter = 0`, which graph trees do, take part in the lock."""

    _lock: Any = RLock()
    _marked = 0

    @property
    def mark_step_counter(cls) -> int:
        """Minus the number of steps marked since it was last set."""
        return _Counter._marked

    @mark_step_counter.setter
    def mark_step_counter(cls, value: int) -> None:
        with _Counter._lock:
            _Counter._marked = value

    @staticmethod
    def after_fork(survivor: int) -> None:
        """The thread that holds it may not exist here."""
        del survivor
        _Counter._lock = RLock()


locks.at_fork(_Counter)


class MarkStepBox(metaclass=_Counter):
    """Negative values tell steps that the user marks from those that Dynamo counts."""


def mark_step_begin() -> None:
    """A new iteration of inference or training begins."""
    with _Counter._lock:
        _Counter._marked -= 1
