"""Runs a test function on several ranks at once, each a fresh process on the simulated NPU, with a time limit for all.

Whatever a rank does, hang, crash or kill itself, no process outlives the test.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import simnpu
from harness.inside import collecting

ROOT = Path(__file__).parents[3]
_IN_CHILD = "SIMNPU_TEST_RANK"
_FINISHED = "rank finished"
NATIVE_SECONDS = 900
TORCH_SECONDS = 1800  # only a hang takes as long


@dataclass
class Rank:
    """What a test function gets: who it is and how to reach the other ranks beside the collectives."""

    number: int
    count: int
    parameters: dict[str, Any]
    directory: Path  # shared by the ranks of this test
    inboxes: list[tuple[int, int]]  # a pipe per rank

    def tell(self, other: int, message: bytes = b".") -> None:
        """Puts a message (at most a pipe's atomic 4096 bytes) into the other rank's inbox."""
        os.write(self.inboxes[other][1], message)

    def hear(self, size: int = 1) -> bytes:
        """Waits for a message in the own inbox."""
        return os.read(self.inboxes[self.number][0], size)


@dataclass
class Ended:
    """How a rank's process ended."""

    code: int
    output: str


def end_group(process: subprocess.Popen[str]) -> None:
    """Kills the process and whatever it started (it leads a process group of its own)."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ended_by(process: subprocess.Popen[str], deadline: float) -> bool:
    """Waits until the process ends; if it has not when the time comes, kills it and returns False."""
    try:
        process.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        end_group(process)
        return False
    return True


def start_ranks(
    test: Callable[..., None], count: int, environment: dict[str, str], seconds: float, parameters: dict[str, Any]
) -> list[Ended]:
    """Starts the ranks, waits until all have ended or the time is over, and returns how each ended."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        pipes = [os.pipe() for _ in range(count)]
        for pipe in pipes:
            for fd in pipe:
                stack.callback(os.close, fd)
        processes: list[tuple[subprocess.Popen[str], Path]] = []
        for number in range(count):
            log = Path(directory) / f"rank{number}.log"
            facts = json.dumps([test.__module__, test.__name__, number, count, parameters, directory, pipes])
            with log.open("w") as file:
                process = subprocess.Popen(
                    [sys.executable, "-m", __name__, facts],
                    cwd=ROOT / "tests" / "simnpu",
                    env=environment | {_IN_CHILD: "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    text=True,
                    start_new_session=True,
                    pass_fds=[fd for pipe in pipes for fd in pipe],
                )
            stack.callback(end_group, process)
            processes.append((process, log))
        deadline = time.monotonic() + seconds
        late = [number for number, (process, _) in enumerate(processes) if not ended_by(process, deadline)]
        ended = [Ended(process.returncode, log.read_text(errors="replace")) for process, log in processes]
        assert not late, f"ranks {late} were not done after {seconds} s:\n" + report(ended)
        return ended


def report(ended: list[Ended]) -> str:
    return "\n".join(f"--- rank {number} ended with {rank.code}:\n{rank.output}" for number, rank in enumerate(ended))


def on_ranks(
    count: int,
    *,
    torch: bool = False,
    devices: int | None = None,
    environment: dict[str, str] | None = None,
    dies: dict[int, int] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The decorated test runs on `count` ranks. `dies`: the exit code (minus a signal) of ranks that do not finish.

    torch: the test imports torch, which takes its time. The test's parameters must be JSON-able.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        if os.environ.get(_IN_CHILD):
            return test

        @functools.wraps(test)
        def run(**parameters: Any) -> None:
            child = simnpu.environ(devices=devices or count) | {"OMP_NUM_THREADS": "1"} | (environment or {})
            ended = start_ranks(test, count, child, TORCH_SECONDS if torch else NATIVE_SECONDS, parameters)
            for number, rank in enumerate(ended):
                expected = (dies or {}).get(number, 0)
                assert rank.code == expected, f"rank {number} should have ended with {expected}:\n{report(ended)}"
                if expected == 0:
                    last = rank.output.rstrip().splitlines()[-1:]
                    assert last == [_FINISHED], f"rank {number} ended early:\n{report(ended)}"

        # pytest reads parameters from the signature; the first is the rank.
        signature = inspect.signature(test)
        run.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
        return run

    return decorate


def _main() -> None:
    module, name, number, count, parameters, directory, pipes = json.loads(sys.argv[1])
    test = getattr(importlib.import_module(module), name)
    test(Rank(number, count, parameters, Path(directory), pipes), **parameters)
    print(_FINISHED, flush=True)


if __name__ == "__main__":
    collecting.rarely()
    _main()
