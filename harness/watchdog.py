"""Ends what a run leaves behind when it cannot do so itself, because it or a worker of xdist was killed.

Run as a program, `watchdog.py MARK=RUN`, it waits until its standard input ends, as that does with the process that
holds the other end, however it ends. Then it kills every process that carries the mark.
Nothing but the standard library is there then, and none of the project's other files.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROUNDS = 50
PATIENCE = 10.0  # seconds for one process to die


@contextlib.contextmanager
def watching(run: str, mark: str) -> Iterator[None]:
    """While it lasts, a process waits for the end of this one. `mark`: the variable whose value begins with the run."""
    watchdog = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, f"{mark}={run}."],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,  # Ctrl-C in a terminal is not for it
    )
    try:
        yield
    finally:
        assert watchdog.stdin is not None
        watchdog.stdin.close()
        watchdog.wait()


def marked(mark: bytes) -> Iterator[int]:
    """The numbers of all processes but this one that have a variable which begins with `mark`, "NAME=value"."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _carries(int(entry.name), mark):
            yield int(entry.name)


def _carries(process: int, mark: bytes) -> bool:
    try:
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:  # gone meanwhile, or somebody else's: not ours
        return False
    return any(variable.startswith(mark) for variable in variables)


def _kill(process: int, mark: bytes) -> None:
    with contextlib.suppress(OSError):  # it has ended
        handle = os.pidfd_open(process)
        try:
            if _carries(process, mark):  # and its number is nobody else's by now
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                poll.poll(PATIENCE * 1000)
        finally:
            os.close(handle)


def main(mark: str) -> int:
    """Wait for the end of standard input, then kill. Returns the exit code: 1 if something does not die."""
    # An interrupted run ends its workers by a signal to all its children, and this one is needed after them.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(1 << 12):
        pass
    for _ in range(ROUNDS):
        found = list(marked(mark.encode()))
        if not found:
            return 0
        for process in found:
            _kill(process, mark.encode())
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
