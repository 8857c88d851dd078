"""Starts one program in a session of its own and sees to its end: deadline, disk cap, crash, and everything that it
started itself. When `run` returns, nothing of it lives any more, whatever it did to get away."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

import psutil

from .inside.protocol import MARKER
from .watchdog import marked

ABORT_GRACE = 10.0  # seconds for the stack dump after SIGABRT
LEAK_GRACE = 10.0  # seconds for helpers that end by themselves once their parent is gone
SIZE_CHECK = 1.0  # seconds between looks at the size of the output files
KILL_ROUNDS = 50

_SET_SUBREAPER, _GET_SUBREAPER = 36, 37  # prctl(2)
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Ended:
    """How the program ended. `returncode` is negative for a signal; `cpu_seconds` includes children it waited for."""

    returncode: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    timed_out: bool = False
    oversize: bool = False
    leaked: list[str] = field(default_factory=list)


class Incoming(Protocol):
    """What a program tells while it runs. `drain` takes in what is there, without waiting, and says whether more can
    come."""

    descriptor: int

    def drain(self) -> bool: ...


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdout: IO[bytes] | None,
    stderr: IO[bytes] | None,
    pass_fds: Sequence[int],
    timeout: float,
    size_limit: int,
    incoming: Incoming,
    interrupted: int,
) -> Ended:
    """Run to the end or the deadline (`timeout` seconds). `env` must hold MARKER. stdout/stderr None: the caller's own.
    `incoming` is read as it fills, until the program's own end: what it started may hold the other end open for ever.
    When the descriptor `interrupted` becomes readable, the program is killed.

    A program that outlives the deadline gets SIGABRT first, so that its faulthandler can dump all stacks, then SIGKILL
    with everything it started. A program that fills stdout or stderr beyond `size_limit` bytes each is killed.
    """
    marker = f"{MARKER}={env[MARKER]}".encode()
    ended = Ended()
    outputs = [stream.fileno() for stream in (stdout, stderr) if stream is not None]
    watch = _Watch(incoming, interrupted)
    with _subreaper():
        before = {child.pid for child in psutil.Process().children()}
        began = time.monotonic()
        child = subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=tuple(pass_fds),
            start_new_session=True,
        )
        family = _Family(child.pid, marker, before)
        handle = os.pidfd_open(child.pid)
        clean = False
        try:
            deadline = began + timeout
            while not watch.sees_end(handle, min(SIZE_CHECK, max(0.0, deadline - time.monotonic()))):
                if watch.interrupted:
                    break
                if any(os.fstat(output).st_size > size_limit for output in outputs):
                    ended.oversize = True
                    break
                if time.monotonic() >= deadline:
                    ended.timed_out = True
                    break
            if ended.timed_out:
                family.note()  # while they can still be told by their parent
                with contextlib.suppress(ProcessLookupError):  # ended this very moment
                    signal.pidfd_send_signal(handle, signal.SIGABRT)
                watch.sees_end(handle, ABORT_GRACE)
            elif not ended.oversize and not watch.interrupted:
                ended.seconds = time.monotonic() - began
                ended.leaked = family.survivors(LEAK_GRACE)
                clean = not ended.leaked
        finally:
            if not clean:
                # Also when interrupted: the child has its own session, so the terminal's signal did not reach it.
                family.kill(handle)
            ended.seconds = ended.seconds or time.monotonic() - began
            status, usage = os.wait4(child.pid, 0)[1:]
            child.returncode = ended.returncode = os.waitstatus_to_exitcode(status)
            ended.cpu_seconds = usage.ru_utime + usage.ru_stime
            os.close(handle)
            incoming.drain()
    return ended


class _Watch:
    """Waits for a program's end, takes in what it tells, and sees an interruption."""

    def __init__(self, incoming: Incoming, interruption: int) -> None:
        self._incoming: Incoming | None = incoming
        self._interruption = interruption
        self.interrupted = False

    def sees_end(self, handle: int, seconds: float) -> bool:
        """Whether the process behind `handle` ends within these seconds, and before an interruption."""
        deadline = time.monotonic() + seconds
        while True:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            if not self.interrupted:
                poll.register(self._interruption, select.POLLIN)
            if self._incoming is not None:
                poll.register(self._incoming.descriptor, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll(max(0.0, deadline - time.monotonic()) * 1000)}
            if handle in ready or not ready:
                return handle in ready
            if self._incoming is not None and self._incoming.descriptor in ready and not self._incoming.drain():
                self._incoming = None
            if not self.interrupted and self._interruption in ready:
                self.interrupted = True
                return False


def _exited(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


@contextlib.contextmanager
def _subreaper() -> Iterator[None]:
    """Make orphans of our descendants our children (instead of init's), so that a daemon cannot get lost."""
    earlier = ctypes.c_int()
    _prctl(_GET_SUBREAPER, ctypes.byref(earlier))
    _prctl(_SET_SUBREAPER, ctypes.c_ulong(1))
    try:
        yield
    finally:
        _prctl(_SET_SUBREAPER, ctypes.c_ulong(earlier.value))


def _prctl(option: int, argument: object) -> None:
    if _libc.prctl(option, argument, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}; the harness needs Linux 3.4 or later")


class _Family:
    """The processes that a run has started, however they hide."""

    def __init__(self, leader: int, marker: bytes, before: set[int]) -> None:
        self._leader, self._marker, self._before = leader, marker, before
        self._noted: set[psutil.Process] = set()

    def note(self) -> None:
        """Remember who lives now."""
        self._noted |= self._alive()

    def _alive(self) -> set[psutil.Process]:
        found = {process for process in self._noted if process.is_running()}
        for child in psutil.Process().children():
            if child.pid not in self._before:
                found.add(child)
                with contextlib.suppress(psutil.NoSuchProcess):
                    found.update(child.children(recursive=True))
        found.update(self._marked())
        living = set()
        for process in found:
            if process.pid == self._leader:
                continue
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() == psutil.STATUS_ZOMBIE:
                    self._reap(process)
                else:
                    living.add(process)
        return living

    def _marked(self) -> Iterator[psutil.Process]:
        for number in marked(self._marker):
            with contextlib.suppress(psutil.NoSuchProcess):  # gone meanwhile
                yield psutil.Process(number)

    def _reap(self, process: psutil.Process) -> None:
        # A zombie whose parent is another living process of the family is that parent's to reap.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)

    def survivors(self, grace: float) -> list[str]:
        """Who still lives `grace` seconds after the leader's end, in words. Helpers on their way out get that time."""
        living = self._alive()
        if not living:
            return []
        described = {process: _describe(process) for process in living}
        _, left = psutil.wait_procs(list(living), timeout=grace)
        late = {process: _describe(process) for process in self._alive()}
        self._noted |= set(late)
        texts = {described.get(process) or late.get(process) or str(process.pid) for process in {*left, *late}}
        return sorted(texts)

    def kill(self, handle: int) -> None:
        """SIGKILL the leader (pidfd `handle`, not reaped yet), its group and all others, until nothing is left.

        Raises RuntimeError should processes appear faster than they die.
        """
        self.note()
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._leader, signal.SIGKILL)
        _exited(handle, ABORT_GRACE)
        for _ in range(KILL_ROUNDS):
            living = self._alive()
            if not living:
                return
            for process in living:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(list(living), timeout=ABORT_GRACE)
        raise RuntimeError(f"processes of a case cannot be killed: {', '.join(map(_describe, self._alive()))}")


def _describe(process: psutil.Process) -> str:
    try:
        words = process.cmdline() or [process.name()]
    except psutil.NoSuchProcess:
        return f"{process.pid}"
    text = " ".join(words)
    return f"{process.pid}: {text if len(text) <= 200 else text[:200] + '…'}"
