"""The counter of marked steps, which graph trees read: exact whichever threads mark, and usable in a forked child."""

from __future__ import annotations

from _thread import RLock

import torch_npu.npu._graph_tree_state as this

from torch_npu_lazy.core import locks


class MarkStepBox:
    """mark_step_counter: minus the number of steps marked since it was last set, as graph trees set it to 0. Negative
    values tell steps that the user marks from those that Dynamo counts."""

    mark_step_counter = 0


_lock = RLock()


def mark_step_begin() -> None:
    """A new iteration of inference or training begins."""
    with _lock:
        MarkStepBox.mark_step_counter -= 1


class _NewLock:
    """The thread that holds it may not exist in a child."""

    def after_fork(self, thread: int) -> None:
        del thread
        this._lock = RLock()


locks.at_fork(_NewLock())
