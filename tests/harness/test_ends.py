"""However a run ends, by Ctrl-C in a real terminal, once or twice, by SIGTERM, by kill -9 of it or of a worker: nothing
is left running, and the report is whole, says that it is partial, or is not there. ENDS_TRIES=200 tries as often, at
moments of another seed each."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from fakes import Suite

TRIES = int(os.environ.get("ENDS_TRIES", "1"))
HANG_ONLY = 600.0  # seconds: longer than anything takes on a loaded machine

# Half of the cases end at once; the others have a child that has left their session, and do not end.
CASE = """
import os, time

if probe.param("n") % 2:
    probe.check(True, "it holds")
else:
    if os.fork() == 0:
        os.setsid()
        time.sleep(3600)
    time.sleep(3600)
"""
HEADER = "# timeout = 3600\n# matrix = {{ n = [{}] }}\n".format(", ".join(map(str, range(1, 9))))


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a name so short that scratch directories are made in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        monkeypatch.setenv("TMPDIR", directory)
        yield Path(directory)


class Terminal:
    """A run in a pseudo-terminal of its own, which it is the foreground of."""

    def __init__(self, command: list[str], directory: Path, mark: str) -> None:
        self._mark = f"ENDS_MARK={mark}".encode()
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(directory)
            os.execve(command[0], command, {**os.environ, "ENDS_MARK": mark, "TERM": "xterm"})
        self.leader = psutil.Process(self._pid)
        self.output = b""

    def press_ctrl_c(self) -> None:
        os.write(self._terminal, b"\x03")

    def read_until(self, enough: Callable[[], bool]) -> None:
        """Take in output until then. A hang only meets the limit."""
        limit = time.monotonic() + HANG_ONLY
        while not enough():
            assert time.monotonic() < limit, self.output.decode(errors="replace")
            if select.select([self._terminal], [], [], 0.05)[0]:
                try:
                    self.output += os.read(self._terminal, 1 << 16)
                except OSError:  # the last process that had the terminal has ended
                    return

    def ended(self) -> bool:
        return self.leader.status() == psutil.STATUS_ZOMBIE

    def family(self) -> list[psutil.Process]:
        """Everything that the run has started and that lives: what has its variable, and what watches over it."""
        found = [process for process in psutil.process_iter() if self._carries_mark(process.pid)]
        with contextlib.suppress(psutil.NoSuchProcess):
            found += self.leader.children()
        return found

    def _carries_mark(self, pid: int) -> bool:
        with contextlib.suppress(OSError):  # ended, or somebody else's
            return self._mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return False

    def close(self) -> int:
        status = os.waitpid(self._pid, 0)[1]
        os.close(self._terminal)
        return status


def press(run: Terminal, _: random.Random) -> None:
    run.press_ctrl_c()


def press_twice(run: Terminal, chance: random.Random) -> None:
    run.press_ctrl_c()
    moment = time.monotonic() + chance.uniform(0, 0.5)
    run.read_until(lambda: time.monotonic() >= moment)
    run.press_ctrl_c()


def terminate(run: Terminal, _: random.Random) -> None:
    run.leader.send_signal(signal.SIGTERM)


def kill(run: Terminal, _: random.Random) -> None:
    run.leader.kill()


def kill_worker(run: Terminal, chance: random.Random) -> None:
    workers = [child for child in run.leader.children() if "watchdog.py" not in " ".join(child.cmdline())]
    chance.choice(workers).kill()
    run.press_ctrl_c()


def is_case(process: psutil.Process, suite: Path) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return str(suite / "cases/added/case/hang.py") in process.cmdline()
    return False


@pytest.mark.parametrize("seed", range(TRIES))
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["serial", "xdist"])
@pytest.mark.parametrize("end", [press, press_twice, terminate, kill, kill_worker])
def test_nothing_is_left(
    suite: Callable[..., Suite],
    temporary: Path,
    end: Callable[[Terminal, random.Random], None],
    workers: list[str],
    seed: int,
) -> None:
    if end is kill_worker and not workers:
        end = kill
    honest, chance = suite(), random.Random(seed)
    honest.add("hang.py", CASE, header=HEADER)
    pytest_on = [sys.executable, "-m", "pytest", *honest.options]
    run = Terminal([*pytest_on, "cases/added", *workers], honest.path, f"{os.getpid()}-{seed}")
    run.read_until(lambda: any(is_case(process, honest.path) for process in psutil.process_iter()))
    moment = time.monotonic() + chance.uniform(0, 1)
    run.read_until(lambda: time.monotonic() >= moment)
    family = set(run.family())
    end(run, chance)
    run.read_until(run.ended)
    run.close()
    limit = time.monotonic() + HANG_ONLY
    while left := [
        process
        for process in {*family, *psutil.process_iter()}
        if process.is_running() and (process in family or is_case(process, honest.path))
    ]:
        assert time.monotonic() < limit, left
        psutil.wait_procs(left, timeout=0.2)
    report = honest.path / "build/conformance/report.json"
    if report.exists():
        found = json.loads(report.read_text())
        judged = sum(found["totals"].values())
        assert judged < found["suite"]["selected"] == 8
        assert b"interrupted" in run.output
    else:
        assert end in {kill, kill_worker}
    # What a killed run leaves, the next one removes.
    subprocess.run([*pytest_on, "cases/import/lazy/none.py"], cwd=honest.path, check=True, capture_output=True)
    assert list(temporary.glob("conformance-*")) == []
