"""Setup that runs once: whoever calls it returns when it is done, a failure leaves it to be done, and a retry does not
repeat what was done already.

Invariants of a function made by `run_once`
- It succeeds at most once; `has_run` turns True when it has, and never back. From then on a call reads that one
  attribute.
- At most one thread runs it. The others wait; if the run fails they wake, and the next of them runs it itself.
- A failure of any kind, KeyboardInterrupt included, leaves `has_run` False, frees it, and reaches the caller unchanged.
- No lock of ours is held while it runs that is not in the table of `locks`, and the modules it declares (`imports`) are
  imported before it is claimed. So the order is module lock first, setup second, always.
- A call returns None at once, with the work perhaps unfinished, in two cases, and only these: the calling thread is
  itself inside the function, or the running thread waits for the calling one (it imports a module whose body makes this
  call). Both are a circle, as a circular import is. `has_run` tells; the record says "skip".

Invariants of `Steps`
- A step that has completed is never run again, whatever fails later.
- A step on the stack of the calling thread is not started again by re-entry. In a child forked from inside the step it
  is, once: what it has done so far is not known there, and a setup that ended without it would be silently incomplete.
  Not a second time in a child of that child, since a step that forks would go on for ever.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from time import monotonic

from . import events, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    class RunOnce(Protocol):
        """What run_once makes: a function with these attributes."""

        has_run: bool
        _is_running: bool
        _running_thread: int | None

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


bodies_done: dict[str, int] = {}
"""Modules whose body has been executed and whose trigger runs now, with the thread: importing one would only wait for
that very setup, and would hide the wait from `locks`."""


def run_once(
    function: Callable[..., Any] | None = None, /, *, imports: Iterable[str] = (), steps: Steps | None = None
) -> Any:
    """Decorator: `@run_once`, or `@run_once(imports=[...], steps=...)`.

    imports: modules that the function needs and that may call it while they are imported; each is imported before.
    steps: the ledger that the function runs its steps through; with it, a child forked from inside a step can run the
    rest. The first success gives the function's result, later calls None. Arguments are passed on and decide nothing.
    """
    if function is None:
        return lambda real: make(real, tuple(imports), steps)
    return make(function, tuple(imports), steps)


def make(function: Callable[..., Any], imports: tuple[str, ...] = (), steps: Steps | None = None) -> RunOnce:
    """The decorator proper, for callers that have the function in hand."""
    from functools import wraps

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if call.has_run:  # type: ignore[attr-defined]
            return None
        return run(args, kwargs)

    once: RunOnce = call  # type: ignore[assignment]
    once.has_run, once._is_running, once._running_thread = False, False, None
    run = _Run(once, function, imports, steps)
    return once


class _Run:
    """The slow path of one function."""

    def __init__(
        self, once: RunOnce, function: Callable[..., Any], imports: tuple[str, ...], steps: Steps | None
    ) -> None:
        self.once, self.function, self.imports, self.steps = once, function, imports, steps
        self.name = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', '?')}"
        self.hold = locks.Hold(self.name)
        self.inherited = False
        self.failed: tuple[int, BaseException] | None = None
        locks.at_fork(self)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.imports:
            earlier = self.failed
            for name in self.imports:
                import_first(name)
            # The import may have run this very function, through a trigger that keeps errors to itself. What failed
            # then failed for this caller: it hears of it, and the next call tries again.
            failed = self.failed  # once: another thread may succeed at any time
            if failed is not None and failed is not earlier and failed[0] == get_ident():
                raise failed[1]
        token = object()
        try:
            if not self._claim(token):
                return None
            return self._run(token, args, kwargs)
        finally:
            self._free(token)

    def _claim(self, token: object) -> bool:
        """Whether it is now this thread's turn; False if there is nothing to do, or nothing to wait for."""
        me = get_ident()
        with locks.state():
            while True:
                if self.once.has_run:
                    return False
                if self.hold.owner is None or (self.hold.owner == me and self.inherited):
                    self.inherited = False
                    self.hold.take(token)
                    locks.begin(token, self.name)
                    self.once._running_thread, self.once._is_running = me, True
                    return True
                if self.hold.owner == me:
                    events.record("skip", self.name, "called from inside itself")
                    return False
                if not self.hold.wait():
                    events.record("skip", self.name, "the thread that runs it waits for this one")
                    return False

    def _run(self, token: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        events.record("run", self.name)
        begun = monotonic()
        try:
            result = self.function(*args, **kwargs)
        except BaseException as error:
            self.failed = (get_ident(), error)
            events.record("failed", self.name, events.failure(error), seconds=monotonic() - begun)
            raise
        with locks.state():
            self.failed = None
            self.once.has_run = True
            self._free(token)
        events.record("done", self.name, seconds=monotonic() - begun)
        return result

    def _free(self, token: object) -> None:
        if self.hold.token is token:
            with locks.state():
                self.once._is_running, self.once._running_thread = False, None
                self.hold.give(token)
                locks.end(token)

    def after_fork(self, thread: int) -> None:
        if self.hold.owner is None:
            return
        if self.hold.owner == thread:
            # The child was forked from inside the function. Only a ledger knows what may still be done.
            self.inherited = self.steps is not None
            return
        self.hold.owner, self.hold.token = None, None
        self.once._is_running, self.once._running_thread = False, None


class Steps:
    """The ledger of named steps. It takes no lock: its steps are run from inside a run_once function.

    completed: the names of the steps that have completed.
    interrupted: steps that a fork cut in two, in the child; they are run again there, so they must be safe to repeat.
    It happens if the fork could not wait (see `locks`), or came from inside the step.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.completed: set[str] = set()
        self.interrupted: list[str] = []
        self._active: dict[str, int] = {}
        locks.at_fork(self)

    def run(self, step: str, function: Callable[..., object], *args: object) -> bool:
        """Run function(*args) unless the step has completed or is being run; whether it was run. Raises what it
        raises."""
        if step in self.completed or step in self._active:
            return False
        subject = f"{self.name}/{step}"
        begun = monotonic()
        self._active[step] = get_ident()
        try:
            function(*args)
            self.completed.add(step)
        except BaseException as error:
            events.record("failed", subject, events.failure(error), seconds=monotonic() - begun)
            raise
        finally:
            self._active.pop(step, None)
        events.record("done", subject, seconds=monotonic() - begun)
        return True

    def after_fork(self, thread: int) -> None:
        for step, ident in list(self._active.items()):
            if ident != thread or step not in self.interrupted:
                del self._active[step]
                self.interrupted.append(step)


def import_first(name: str) -> None:
    """Import a module before a setup is claimed. Raises what the import raises."""
    if name not in bodies_done or sys.modules.get(name) is None:
        __import__(name)
