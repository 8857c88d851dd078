"""Who holds what and who waits for whom, in one place: only from there can a deadlock with Python's import locks be
seen, and only there can a fork be kept away from a setup that another thread has half done.

Invariants
- One mutex guards every field here. It is held for a few instructions only, never while foreign code runs; the one
  exception is a fork, during which the forking thread keeps it, so that a child never inherits a state half written.
- A hold has one owner. A thread that wants it waits only while the owner does not, directly or through other threads,
  wait for that very thread. Waits for module locks of the import system count. Otherwise `Hold.wait` says so at once,
  and the caller goes on as if it had re-entered: the wait would never have ended.
- A fork waits until no other thread is at work (`begin` ... `end`), unless that thread waits for the forking one, or
  stands still (no processor time used for STALL seconds: it may wait for something that the forking thread holds and
  nobody can see).
- In a child every hold of a thread that is gone is free; those of the forking thread stay.
"""

from __future__ import annotations

import _frozen_importlib
import os
import sys
import time
from _thread import RLock, allocate_lock, get_ident

from . import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Condition
    from typing import Protocol

    class ForkHandler(Protocol):
        """Something with state that belongs to threads; `thread` is the one that the child has."""

        def after_fork(self, thread: int) -> None: ...


POLL = 0.02
"""Seconds between two looks at the import system, which announces nothing: its waits are found only by looking."""

STALL = 5.0
"""Seconds without processor time after which a fork no longer waits for a thread."""

_creating = allocate_lock()
_condition: Condition | None = None
_waiting: dict[int, Hold] = {}
_at_work: dict[object, tuple[int, str]] = {}
_forking: set[int] = set()
_fork_handlers: list[ForkHandler] = []

watched: set[str] = set()
"""Names of modules whose import by another thread a fork waits for."""


class WouldDeadlock(RuntimeError):
    """A lock was asked for while its owner waits for the asking thread."""


def state() -> Condition:
    """The mutex and condition of everything here. threading is imported with the first use: it costs more than all
    this."""
    global _condition  # noqa: PLW0603
    if _condition is None:
        from threading import Condition, RLock

        with _creating:
            if _condition is None:
                _condition = Condition(RLock())
                if hasattr(os, "register_at_fork"):
                    # As late as can be: "before" handlers run last come first. A lock that another package takes in
                    # its own handler (logging does) is thus not yet taken while ours waits for a thread that may need
                    # it.
                    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
    return _condition


def at_fork(handler: ForkHandler) -> None:
    """Have handler.after_fork(ident) called in each child, under `state()`. Kept for ever."""
    _fork_handlers.append(handler)


class Hold:
    """What one thread at a time may have. All methods but `held_by_me` need `state()`; none of them blocks but
    `wait`."""

    __slots__ = ("name", "owner", "token")

    def __init__(self, name: str) -> None:
        self.name = name
        self.owner: int | None = None
        self.token: object = None

    def take(self, token: object) -> None:
        # The token first: whoever is interrupted in between gives back by token.
        self.token = token
        self.owner = get_ident()

    def give(self, token: object) -> bool:
        """Free it if it was taken with this token."""
        if self.token is not token:
            return False
        self.owner, self.token = None, None
        state().notify_all()
        return True

    def wait(self) -> bool:
        """Wait for a change. False, without waiting, if the owner waits for this thread."""
        me = get_ident()
        if leads_to(self.owner, me):
            return False
        _waiting[me] = self
        try:
            state().wait(POLL)
        finally:
            _waiting.pop(me, None)
        return True


class ScopeLock:
    """A re-entrant lock that is free in a forked child unless the forking thread held it. A fork does not wait for it.

    A lock of the interpreter's own does the work where nobody waits; only waiting goes through the table. `owner` may
    therefore lag behind the lock by an instant: who waits looks again.
    """

    def __init__(self, name: str) -> None:
        self._lock = RLock()
        self._hold = Hold(name)
        self._depth = self._waiters = 0
        # Entering does not go through the table, whose first use is what has forks seen to.
        state()
        at_fork(self)

    def __enter__(self) -> ScopeLock:
        """Raises WouldDeadlock if the owner waits for this thread."""
        if not self._lock.acquire(False):
            self._wait()
        self._depth += 1
        self._hold.owner = get_ident()
        return self

    def _wait(self) -> None:
        with state():
            self._waiters += 1
            try:
                while not self._lock.acquire(False):
                    if not self._hold.wait():
                        events.record("deadlock avoided", self._hold.name)
                        raise WouldDeadlock(
                            f"{self._hold.name} is held by thread {self._hold.owner}, which waits for this thread, "
                            "most likely for a module that is being imported here; do not enter it from the body of a "
                            "module"
                        )
            finally:
                self._waiters -= 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._hold.owner = None
        self._lock.release()
        if self._waiters:
            with state():
                state().notify_all()

    @property
    def owner(self) -> int | None:
        """The thread that holds it."""
        return self._hold.owner

    def after_fork(self, thread: int) -> None:
        self._waiters = 0
        if self._hold.owner != thread:
            self._lock = RLock()
            self._hold.owner, self._depth = None, 0


def begin(work: object, name: str) -> None:
    """This thread is at work on something that a fork must not cut in two. Needs `state()`."""
    _at_work[work] = (get_ident(), name)


def end(work: object) -> None:
    """The work is done."""
    with state():
        if _at_work.pop(work, None) is not None:
            state().notify_all()


def leads_to(thread: int | None, target: int) -> bool:
    """Whether `thread` is `target` or waits for it, directly or through others. Needs `state()`."""
    seen: set[int] = set()
    todo = [thread]
    while todo:
        at = todo.pop()
        if at == target:
            return True
        if at is None or at in seen:
            continue
        seen.add(at)
        hold = _waiting.get(at)
        if hold is not None:
            todo.append(hold.owner)
        todo.extend(_import_owners(at))
    return False


def _import_owners(thread: int) -> list[int | None]:
    """The owners of the module locks that a thread waits for: CPython's own table for its own deadlock detection, one
    lock per thread up to 3.11, a list of them since 3.12."""
    table = getattr(_frozen_importlib, "_blocking_on", None)
    lock = table.get(thread) if table is not None else None
    if lock is None:
        return []
    try:
        return [one.owner for one in (tuple(lock) if isinstance(lock, list) else (lock,))]
    except AttributeError:
        return []


def _before_fork() -> None:
    me = get_ident()
    condition = state()
    condition.acquire()
    try:
        _wait_for_others(me, condition)
    except BaseException as error:
        # Python prints what a handler raises and forks all the same; the mutex stays ours until _in_parent.
        events.record("fork", "not all work was waited for", events.failure(error))
        raise


def _wait_for_others(me: int, condition: Condition) -> None:
    used: dict[int, float | None] = {}
    since = time.monotonic()
    waited = stalled = False
    _forking.add(me)
    try:
        while True:
            others = _others_at_work(me)
            # A thread that is at work and forks too waits for this one: the later of the two goes on.
            awaited = {ident for ident in others if ident not in _forking and not leads_to(ident, me)}
            if not awaited:
                break
            now = {ident: _processor_time(ident) for ident in awaited}
            if now != used:
                used, since = now, time.monotonic()
            elif time.monotonic() - since >= STALL:
                stalled = True
                break
            waited = True
            condition.wait(POLL)
    finally:
        _forking.discard(me)
    if waited:
        events.record("fork", "waited", "for the work of other threads")
    for ident, name in others.items():
        why = f"stood still for {STALL} s" if stalled and ident in awaited else "waits for the forking one"
        events.record("fork", name, f"in the middle of it: the thread at work {why}")


def _others_at_work(me: int) -> dict[int, str]:
    """Who is at work or imports a watched module, and on what. The import system holds a module's lock a little longer
    than the work lasts, before and after."""
    others = dict(_at_work.values())
    for name, owner in importing().items():
        others.setdefault(owner, f"import of {name}")
    # Not those that this process, forked itself, has never had.
    alive = sys._current_frames()
    return {ident: name for ident, name in others.items() if ident != me and ident in alive}


def importing() -> dict[str, int]:
    """The watched modules whose lock is held, and by whom."""
    table = getattr(_frozen_importlib, "_module_locks", {})
    found = {}
    for name in watched:
        reference = table.get(name)
        owner = getattr(reference() if reference is not None else None, "owner", None)
        if owner is not None:
            found[name] = owner
    return found


def abandoned(thread: int) -> list[str]:
    """In a child: the modules, watched or below a watched one, whose lock a thread holds that does not exist here."""
    below = tuple(f"{name}." for name in watched)
    found = []
    for name, reference in list(getattr(_frozen_importlib, "_module_locks", {}).items()):
        owner = getattr(reference(), "owner", None)
        if owner is not None and owner != thread and (name in watched or name.startswith(below)):
            found.append(name)
    return found


def forget_import(name: str) -> None:
    """In a child: drop the module's lock, whose owner does not exist here."""
    getattr(_frozen_importlib, "_module_locks", {}).pop(name, None)


def _processor_time(ident: int) -> float | None:
    clock: Callable[[int], int] | None = getattr(time, "pthread_getcpuclockid", None)
    if clock is None:
        return None
    try:
        return time.clock_gettime(clock(ident))
    except OSError:
        return None


def _in_parent() -> None:
    state().release()


def _in_child() -> None:
    global _condition  # noqa: PLW0603
    from threading import Condition, RLock

    me = get_ident()
    _condition = Condition(RLock())
    _waiting.clear()
    _forking.clear()
    for work, (ident, name) in list(_at_work.items()):
        if ident != me:
            del _at_work[work]
            events.record("fork", name, "was at work in a thread that this child does not have; it starts anew")
    for handler in _fork_handlers:
        handler.after_fork(me)
