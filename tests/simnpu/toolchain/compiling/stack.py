"""Processes that compile kernels with triton-ascend, and a kernel compiler in front of the real one that goes wrong on
demand."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from deadlines import HANG

import simnpu
from harness.inside import collecting
from simnpu.toolchain import surroundings

WORKER = Path(__file__).with_name("kernel_worker.py")
SECONDS = HANG
NEEDS_KERNELS = pytest.mark.skipif(surroundings.missing() is not None, reason=f"unsupported: {surroundings.missing()}")

# Goes wrong as the file `plan` says. The real compiler's child process waits for the other end of a pipe in `hang` and
# `crash`, so that the fault comes while it is at work.
COMPILER = """#!/bin/sh
ulimit -S -f unlimited
[ "$1" = --help ] && exec {real} "$@"
echo "$$ $*" >> {place}/calls
plan=$(cat {place}/plan)
case $plan in
error) echo "out of order today" >&2; exit 3 ;;
killed) kill -KILL $$ ;;
silent) echo "all is well"; exit 0 ;;
noise) printf '\\377\\376\\000 noise' >&2; exit 1 ;;
full) ulimit -S -f 8; exec {real} "$@" ;;
hang|crash)
    input=$1; shift
    rm -f {place}/pipe; mkfifo {place}/pipe
    [ $plan = hang ] && SIMNPU_COMPILE_TIMEOUT=1 exec {real} {place}/pipe "$@"
    {real} {place}/pipe "$@" &
    exec 3> {place}/pipe
    kill -SEGV $(cat /proc/$!/task/$!/children)
    wait $!; exit $? ;;
gate)
    # Says that it is here and waits to be let go on, or for its end.
    echo $PPID > {place}/at_gate; read -r go < {place}/gate
    exec {real} "$@" ;;
esac
exec {real} "$@"
"""


class Stack:
    """Caches of its own below `place`, all but that for launchers; processes one after the other, or at once."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.environment = simnpu.environ()
        real = shutil.which("bishengir-compile", path=self.environment["PATH"])
        assert real is not None
        program = place / "bin" / "bishengir-compile"
        program.parent.mkdir()
        program.write_text(COMPILER.format(real=shlex.quote(real), place=shlex.quote(str(place))))
        program.chmod(0o755)
        self.environment |= {
            "PATH": f"{program.parent}{os.pathsep}{self.environment['PATH']}",
            "TRITON_CACHE_DIR": str(place / "triton"),
            "PLACE": str(place),
        }
        self.plan("right")

    def plan(self, name: str) -> None:
        (self.place / "plan").write_text(name)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, collecting.__file__, str(WORKER), *arguments],
            env=self.environment | environment,
            cwd=self.place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> str:
        """What the process says; it must end well."""
        process = self.start(*arguments, **environment)
        return finish([process])[0]

    def calls(self) -> list[str]:
        """The compiler's calls so far."""
        calls = self.place / "calls"
        return calls.read_text().splitlines() if calls.exists() else []


def finish(processes: Iterable[subprocess.Popen[str]]) -> list[str]:
    """What each process says, all of which must end well."""
    said = []
    for process in processes:
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert process.returncode == 0, f"the process ended with {process.returncode}:\n{output}"
        said.append(output)
    return said


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)
