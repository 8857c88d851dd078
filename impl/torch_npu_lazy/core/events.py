"""The record of what was deferred and what ran, always on: "why did that load now?" must be answerable after the fact.

Invariants: an append is one atomic list operation, so no lock is taken and none can be held across a fork; the record
is bounded by LIMIT, later events are counted and not kept; an event keeps no exception and no frame, only their text.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from time import monotonic

LIMIT = 2000

_HERE = f"{__file__.rpartition('/')[0].rpartition('/')[0]}/"
_RUNNERS = frozenset(["runpy", "threading", "concurrent.futures.thread"])
_events: list[Event] = []
_dropped = 0


class Event:
    """One thing that happened.

    kind: "defer", "run", "done", "failed", "skip", "wait", "fork", ...; subject: what it happened to; at: seconds of
    time.monotonic(); seconds: how long it took, or None; thread: its identifier; cause: "module:line" of the first
    frame outside this package and the import system; origin: the same of the outermost frame, which is the program's or
    the thread's own; detail: free text, for a failure the error's type and text.
    """

    __slots__ = ("at", "cause", "detail", "kind", "origin", "seconds", "subject", "thread")

    def __init__(self, kind: str, subject: str, detail: str, seconds: float | None) -> None:
        self.kind, self.subject, self.detail, self.seconds = kind, subject, detail, seconds
        self.cause, self.origin = _callers()
        self.at, self.thread = monotonic(), get_ident()

    def __repr__(self) -> str:
        took = "" if self.seconds is None else f" in {self.seconds * 1000:.1f} ms"
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.kind} {self.subject}{took} (by {self.cause}){detail}"


def record(kind: str, subject: str, detail: str = "", *, seconds: float | None = None) -> None:
    """Note an event; who caused it is found on the caller's stack."""
    global _dropped  # noqa: PLW0603
    if len(_events) >= LIMIT:
        _dropped += 1
        return
    _events.append(Event(kind, subject, detail, seconds))


def failure(error: BaseException) -> str:
    """The text kept of an error."""
    return f"{type(error).__name__}: {error}"


def so_far() -> tuple[Event, ...]:
    """All events, oldest first."""
    return tuple(_events)


def dropped() -> int:
    """How many events came after LIMIT."""
    return _dropped


def explain() -> list[str]:
    """The record as lines for a person; the time is milliseconds since the first event."""
    events = so_far()
    lines = [f"{(event.at - events[0].at) * 1000:9.1f} ms  {event!r}" for event in events]
    if _dropped:
        lines.append(f"{_dropped} later events were not kept")
    return lines


def _callers() -> tuple[str, str]:
    """The innermost and the outermost place that this comes from."""
    innermost = outermost = "interpreter:0"
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        # The import system's own files are named "<frozen importlib...>".
        if not code.co_filename.startswith((_HERE, "<frozen importlib")):
            module = frame.f_globals.get("__name__", code.co_filename)
            place = f"{module}:{frame.f_lineno}"
            if innermost == "interpreter:0":
                innermost = place
            if module not in _RUNNERS and not code.co_filename.startswith("<frozen runpy"):
                outermost = place
        frame = frame.f_back
    return innermost, outermost
