"""A function in a forked child, for rules about fork: what it returns and checks comes back, and however it ends, it is
reaped and told apart."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from ._session import ChildSession, ProbeError, Session, Unsupported, begin, raised_at, session

DUMP_GRACE = 5.0  # seconds for the stack dump after SIGABRT
DUMP_LIMIT = 6000  # characters of it in a failure


def forked(function: Callable[..., Any], *args: Any, timeout: float | None = None) -> Any:
    """`function(*args)` in a child made by os.fork in the calling thread; returns its result, which must be JSON-able.

    The child's checks and notes count as the case's own. A child that raises, exits, is killed by a signal, or still
    runs after `timeout` seconds (without one: when three quarters of the case's time are over) is a failed check, with
    the child's stacks. The child ends without atexit handlers, and is reaped on every path. Raises CheckFailed for it
    and for the first failed check of the child; ProbeError for a result that is not JSON-able; Unsupported when the
    child says so.
    """
    parent = session()
    call = _Call(function, args, parent.left(timeout))
    try:
        _flush()  # what is buffered here must not be printed by the child as well
        child = os.fork()
        if child == 0:
            call.run(parent)
        overran, status = _reap(child, call.seconds)
        return call.judge(parent, overran, status)
    finally:
        call.close()


class _Call:
    """What parent and child share: the function, and files without a name for the records and the stack dump."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], seconds: float | None) -> None:
        self.name = getattr(function, "__name__", repr(function))
        self.function, self.args, self.seconds = function, args, seconds
        self.records, self.dump = os.memfd_create("harness-records"), os.memfd_create("harness-dump")

    def close(self) -> None:
        os.close(self.records)
        os.close(self.dump)

    def run(self, parent: Session) -> NoReturn:
        """The child's whole life."""
        try:
            faulthandler.enable(file=self.dump, all_threads=True)
            # A new session: another thread may have held the old one's lock at the moment of the fork.
            own = begin(ChildSession(parent.params, self.records))
            own.limit(None if self.seconds is None else 0.8 * self.seconds)  # its own waits overrun first, and say so
            try:
                own.emit({"kind": "result", "value": self._result(), **own.counts()})
            except Unsupported:
                pass  # recorded when it was raised
            except BaseException as error:
                what = {"type": type(error).__name__, "message": str(error), "stack": raised_at(error)}
                own.emit({"kind": "raised", **what, "probe_error": isinstance(error, ProbeError), **own.counts()})
            _flush()
            os._exit(0)
        finally:
            os._exit(70)  # whatever went wrong above: never back into the case's own code

    def _result(self) -> Any:
        value = self.function(*self.args)
        try:
            return json.loads(json.dumps(value))
        except (TypeError, ValueError) as error:
            raise ProbeError(f"what {self.name} returns cannot leave the forked child: {error}") from None

    def judge(self, parent: Session, overran: bool, status: int) -> Any:
        """Hand the records on; then the result, or why there is none."""
        try:
            entries = [json.loads(line) for line in _text(self.records).splitlines()]
        except ValueError:
            raise ProbeError(f"what {self.name} told in the forked child cannot be read; did it write there?") from None
        last: dict[str, Any] = {"kind": ""}
        # Three kinds end the child's records: there is one of them at most.
        if entries and entries[-1]["kind"] in {"result", "raised", "unsupported"}:
            last = entries.pop()
        parent.adopt(entries)
        checks = [entry for entry in entries if entry["kind"] == "check"]
        arrived = {"checks": len(checks), "failures": sum(not entry["ok"] for entry in checks)}
        # A failed check that could not be written down must not become a pass.
        if "checks" in last and arrived != {name: last[name] for name in arrived}:
            raise ProbeError(
                f"{self.name} made {last['checks']} checks in the forked child; {len(checks)} have arrived"
            )
        if last["kind"] == "unsupported":
            parent.unsupported(last["reason"])
            raise Unsupported(last["reason"])
        if last["kind"] == "raised" and last["probe_error"]:
            raise ProbeError(last["message"])
        wanted = f"{self.name} returns in a forked child"
        stacks = _text(self.dump)[:DUMP_LIMIT]
        shown = f"; its stacks:\n{stacks}" if stacks else ""
        if overran:
            limit = f"an end within {self.seconds:.3g} s"
            parent.failed(wanted, expected=limit, found=f"it still ran, and was killed{shown}")
        if last["kind"] == "raised":
            found = f"{last['type']}: {last['message']}"
            parent.failed(wanted, expected="no exception", found=found, stack=last["stack"])
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            parent.failed(wanted, expected="no signal", found=f"killed by {signal.Signals(-code).name}{shown}")
        if code or last["kind"] != "result":
            parent.failed(wanted, expected="a result", found=f"exit code {code} before it returned")
        return last["value"]


def _reap(child: int, seconds: float | None) -> tuple[bool, int]:
    """Wait for the child's end: (it overran and was killed, its wait status)."""
    handle = os.pidfd_open(child)
    try:
        ended = _ended(handle, seconds)
        if not ended:
            signal.pidfd_send_signal(handle, signal.SIGABRT)
            _ended(handle, DUMP_GRACE)
    finally:  # also on Ctrl-C, or when a signal handler of the case raises
        with contextlib.suppress(ProcessLookupError):  # it has ended
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        os.close(handle)
    return not ended, status


def _ended(handle: int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def _text(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "backslashreplace")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # the judged package has closed or removed it
            stream.flush()
