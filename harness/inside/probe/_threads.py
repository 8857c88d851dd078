"""Threads and gates for rules about threads: an interleaving is forced, not hoped for, and a wait for what never comes
ends as a failed check that shows where every thread stands."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from .. import jitter
from ._session import HARNESS, CheckFailed, label, session

LOOK = 0.001  # seconds between two looks at the stack of a thread
JITTER = (0.75, 0.005)  # chance and seconds of a delay, where the case has a place for one


class Gate:
    """Closed until `parties` arrivals; then open for ever. Known to one process: a forked child has a copy. Made by
    `gate`."""

    def __init__(self, name: str, parties: int = 1) -> None:
        self.name, self.parties = name, parties
        self._arrived = 0
        self._changed = threading.Condition()

    @property
    def is_open(self) -> bool:
        """Whether all have arrived."""
        return self._arrived >= self.parties

    def arrive(self) -> None:
        """Say that the calling thread has come this far, and go on at once."""
        jitter.delay(f"arrive {self.name}", *JITTER)
        with self._changed:
            self._arrived += 1
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the gate is open. Not open after `timeout` seconds (without one: when three quarters of the case's
        time are over) is a failed check with the stacks of all threads."""
        seconds = session().left(timeout)
        with self._changed:
            opened = self._changed.wait_for(lambda: self.is_open, seconds)
            arrived = self._arrived
        jitter.delay(f"wait {self.name}", *JITTER)
        if not opened:
            session().failed(
                f"the gate {self.name!r} opens",
                expected=f"{self.parties} of {self.parties} arrive within {seconds:.3g} s",
                found=f"{arrived} of {self.parties}\n{stacks()}",
            )

    def meet(self, timeout: float | None = None) -> None:
        """Arrive, and wait for the others, as `wait` does."""
        self.arrive()
        self.wait(timeout)


def gate(name: str, parties: int = 1) -> Gate:
    """A closed gate that `parties` arrivals open. `name` says in a failure what has not happened ("A has executed the
    body")."""
    return Gate(name, parties)


class Thread:
    """A running thread whose end the case must ask for with `join`. Made by `thread`."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.name = getattr(function, "__name__", repr(function))
        self._function, self._args = function, args
        self._result: Any = None
        self._error: BaseException | None = None
        self._label = label.get()
        # A daemon: one that hangs must not turn the failure that says so into a hanging shutdown.
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        session().unjoined.append(self)
        self._thread.start()

    def _run(self) -> None:
        label.set(self._label)
        jitter.delay(f"begin {self.name}", *JITTER)
        try:
            self._result = self._function(*self._args)
        except BaseException as error:
            self._error = error

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def join(self, timeout: float | None = None) -> Any:
        """Wait for the end; the function's result, or the very exception that it raised. A thread that still runs after
        `timeout` seconds (without one: when three quarters of the case's time are over) is a failed check with the
        stacks of all threads."""
        opened = session()
        if self in opened.unjoined:
            opened.unjoined.remove(self)
        seconds = opened.left(timeout)
        self._thread.join(seconds)
        if self.alive:
            opened.failed(
                f"the thread {self.name} ends", expected=f"an end within {seconds:.3g} s", found=f"it runs\n{stacks()}"
            )
        if self._error is not None:
            raise self._error
        return self._result

    def reach(self, function: str | tuple[str, ...], timeout: float | None = None) -> None:
        """Wait until a call of a function with this name is on the thread's stack ("wait", "acquire", "_lazy_setup"):
        the way to know that the judged code has got to a place where no gate can be put. A tuple: one of these. A
        thread that ends before, or is not there in time, is a failed check."""
        functions = (function,) if isinstance(function, str) else function
        seconds = session().left(timeout)
        deadline = None if seconds is None else time.monotonic() + seconds
        look = threading.Event()
        while not self._inside(functions):
            if not self.alive or (deadline is not None and time.monotonic() >= deadline):
                found = f"it runs\n{stacks()}" if self.alive else f"it has ended{self._with()}"
                session().failed(f"the thread {self.name} reaches {' or '.join(functions)}", found=found)
            look.wait(LOOK)

    def _inside(self, functions: tuple[str, ...]) -> bool:
        frame = sys._current_frames().get(self._thread.ident or 0)
        while frame is not None:
            if frame.f_code.co_name in functions:
                return True
            frame = frame.f_back
        return False

    def _with(self) -> str:
        error = self._error
        return "" if error is None or isinstance(error, CheckFailed) else f" with {type(error).__name__}: {error}"


def thread(function: Callable[..., Any], *args: Any) -> Thread:
    """Start `function(*args)` in a thread. A case that ends without having joined it is an error of the case."""
    return Thread(function, args)


def stacks() -> str:
    """Where every thread stands, outermost call first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        parts.append(f"thread {names.get(ident, ident)}:")
        parts += [f"  {line}" for line in _lines(frame)]
    return "\n".join(parts)


def _lines(frame: FrameType | None) -> list[str]:
    lines: list[str] = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(HARNESS):
            lines.append(f"{code.co_filename}:{frame.f_lineno} in {code.co_name}")
        frame = frame.f_back
    return lines[::-1]
