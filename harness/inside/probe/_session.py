"""Where a case's results go: to the parent as JSON lines on a file of their own, to the terminal when a person runs the
case by hand, or only into exceptions in a process that the case itself started."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from .. import jitter, recorder
from ..protocol import POINT, PREAMBLE, SOAK, TIMEOUT
from ..sealing import KEY_BYTES, Chain

PATIENCE = 0.75
"""Part of a case's time after which its waits overrun: early enough to say so before the whole case is stopped."""
HARNESS = str(Path(__file__).resolve().parent.parent) + os.sep
label: ContextVar[str] = ContextVar("label", default="")
"""What stands in front of each check's sentence: which value is judged, in `each`."""


class CheckFailed(AssertionError):
    """A check did not hold. Already recorded when it is raised, so that catching it changes no verdict."""


class ProbeError(Exception):
    """The case uses the probe wrongly: the fault is the case's, and the point's outcome harness-error."""


class Unsupported(BaseException):
    """The case cannot be judged here, and ends. Already recorded; no `except Exception` catches it."""


class Session:
    """What the probe talks to. Only the process that opened the session writes; forked children keep silent."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.checks = 0
        self.failures = 0
        self.pid = os.getpid()
        self.unjoined: list[Any] = []
        """Threads that the probe has started and the case has not asked for yet."""
        self._lock = threading.Lock()
        self._deadline = math.inf
        self.limit(PATIENCE * float(os.environ.get(TIMEOUT, "inf")))

    def limit(self, seconds: float | None) -> None:
        """From now on, waits without a limit of their own overrun in this many seconds; None: never."""
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds

    def left(self, timeout: float | None) -> float | None:
        """Seconds that a wait may take: `timeout`, or all that the case has left; None for ever."""
        if timeout is not None:
            return timeout
        return None if math.isinf(self._deadline) else max(0.0, self._deadline - time.monotonic())

    @property
    def owner(self) -> bool:
        return os.getpid() == self.pid

    def param(self, name: str) -> Any:
        try:
            return self.params[name]
        except KeyError:
            known = ", ".join(self.params) or "none"
            raise ProbeError(f"no parameter {name!r} in this case's matrix; it has: {known}") from None

    def passed(self, message: str) -> None:
        self._keep({"kind": "check", "ok": True, "message": f"{label.get()}{message}"})

    def failed(
        self,
        message: str,
        *,
        expected: str | None = None,
        found: str | None = None,
        facts: dict[str, Any] | None = None,
        import_stack: list[str] | None = None,
        stack: list[str] | None = None,
    ) -> NoReturn:
        """Record a failed check, then raise CheckFailed. `stack`: where it failed, if that is not here."""
        entry = {
            "kind": "check",
            "ok": False,
            "message": f"{label.get()}{message}",
            "expected": expected,
            "found": found,
            "facts": {key: show(value) for key, value in (facts or {}).items()},
            "import_stack": import_stack or [],
            "traceback": [*call_stack(sys._getframe(1)), *(stack or [])],
        }
        self._keep(entry)
        raise CheckFailed(describe(entry))

    def _keep(self, entry: dict[str, Any]) -> None:
        if self.owner:
            with self._lock:
                self.checks += 1
                self.failures += not entry["ok"]
            self.emit(entry)

    def counts(self) -> dict[str, int]:
        """What an ending record says, so that one that is missing shows."""
        return {"checks": self.checks, "failures": self.failures}

    def adopt(self, entries: Iterable[dict[str, Any]]) -> None:
        """Keep a forked child's checks and notes as this process's own. Raises CheckFailed for the first failed one."""
        failed = None
        for entry in entries:
            if entry["kind"] == "note":
                self.note(entry["key"], entry["value"])
            else:
                self._keep(entry)
                failed = failed or (None if entry["ok"] else entry)
        if failed is not None:
            raise CheckFailed(describe(failed))

    def note(self, key: str, value: Any) -> None:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ProbeError(f"note {key!r} cannot go into a report: {error}") from None
        if self.owner:
            self.emit({"kind": "note", "key": key, "value": value})

    def unsupported(self, reason: str) -> None:
        if self.owner:
            self.emit({"kind": "unsupported", "reason": reason})

    def finish(self) -> None:
        """The case has reached its last line. Raises ProbeError when it has not asked how its threads ended."""
        if self.owner and self.unjoined:
            names = ", ".join(thread.name for thread in self.unjoined)
            raise ProbeError(f"the case ends without join() of what probe.thread has started: {names}")

    def emit(self, entry: dict[str, Any]) -> None:
        raise NotImplementedError


class ChildSession(Session):
    """In a child of the harness: one JSON line per record, written at once and whole, so that a crash loses nothing."""

    # Taken here, before the subject can put something in their place.
    _encode = staticmethod(json.JSONEncoder(default=repr).encode)
    _write = staticmethod(os.write)

    def __init__(self, params: dict[str, Any], descriptor: int) -> None:
        super().__init__(params)
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor

    def emit(self, entry: dict[str, Any]) -> None:
        record = self._encode(entry).encode("utf-8", "backslashreplace")
        with self._lock:
            line = self._line(record)
            while line:
                line = line[self._write(self._descriptor, line) :]

    def _line(self, record: bytes) -> bytes:
        return record + b"\n"


class SealedSession(ChildSession):
    """Right under the runner. The socket gives the key of the seals first."""

    def __init__(self, params: dict[str, Any], descriptor: int) -> None:
        super().__init__(params, descriptor)
        self._chain = Chain(os.read(descriptor, KEY_BYTES))

    def _line(self, record: bytes) -> bytes:
        return self._chain.seal(record) + b" " + record + b"\n"


class NestedSession(Session):
    """In a process that the case started: a failed check only raises, and the case judges how that process ended."""

    def emit(self, entry: dict[str, Any]) -> None:
        if entry["kind"] == "check" and not entry["ok"]:
            print(describe(entry), file=sys.stderr, flush=True)


_session: Session | None = None


def session() -> Session:
    """The session of this process, opened on first use."""
    return _session if _session is not None else begin(_nested())


def begin(opened: Session) -> Session:
    global _session  # noqa: PLW0603
    _session = opened
    return opened


def _nested() -> Session:
    """Open a session in an interpreter that the runner did not start."""
    recorder.install()
    soak = os.environ.get(SOAK)
    if soak is not None:
        jitter.start(soak)
    point = os.environ.get(POINT)
    if point is not None:
        # A nested interpreter of a case: the same subject, so the same preamble, before anything else of it.
        preamble = os.environ.get(PREAMBLE)
        if preamble:
            __import__(preamble)
        return NestedSession(json.loads(point))

    return NestedSession({})


def call_stack(frame: FrameType | None) -> list[str]:
    """The callers outside the harness, outermost first, as "file:line in function"."""
    lines: list[str] = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((HARNESS, "<frozen ")):
            lines.append(f"{code.co_filename}:{frame.f_lineno} in {code.co_name}")
        frame = frame.f_back
    return lines[::-1]


def raised_at(error: BaseException) -> list[str]:
    """Where an exception comes from, outside the harness, as `call_stack`."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{at.filename}:{at.lineno} in {at.name}" for at in frames if not at.filename.startswith(HARNESS)]


def show(value: Any, limit: int = 2000) -> str:
    """repr, cut; an object whose repr raises is described instead of losing the failure it belongs to."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}: {error}>"
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def describe(entry: dict[str, Any]) -> str:
    """A failed check in words, several lines."""
    lines = [entry["message"]]
    if entry.get("expected") is not None:
        lines.append(f"  expected: {entry['expected']}")
    if entry.get("found") is not None:
        lines.append(f"  found:    {entry['found']}")
    lines += [f"  {key} = {value}" for key, value in entry.get("facts", {}).items()]
    if entry.get("import_stack"):
        lines.append("  first imported by:")
        lines += [f"    {line}" for line in entry["import_stack"]]
    return "\n".join(lines)
