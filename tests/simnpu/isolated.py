"""Runs a test function in a process of its own on the simulated NPU, with a time limit.

A test that hangs, crashes or leaves the device in a bad state thus harms nobody else.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import simnpu

ROOT = Path(__file__).parents[2]
_IN_CHILD = "SIMNPU_TEST_CHILD"
TORCH_SECONDS = 1800  # only a hang takes as long
NATIVE_SECONDS = 900


@dataclass
class _Ended:
    """How a test's process ended."""

    code: int
    stdout: str
    stderr: str


def _in_fresh(task: str, environment: dict[str, str], seconds: int) -> _Ended:
    done = subprocess.run(
        [sys.executable, __file__, task],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return _Ended(done.returncode, done.stdout, done.stderr)


class _Imported:
    """An interpreter that has imported torch and torch_npu, has not touched the device, and forks for every task."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=ROOT,
            env=simnpu.environ() | {_IN_CHILD: "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, task: str, seconds: int) -> _Ended:
        """How the task's process has ended. Ends this interpreter, too, if it takes longer than `seconds`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as directory:
            self._process.stdin.write(f"{json.dumps([task, directory])}\n".encode())
            self._process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(self._process.stdout, selectors.EVENT_READ)
                code = self._process.stdout.readline() if selector.select(seconds) else b""
            said = [path.read_text() if path.exists() else "" for path in _outputs(directory)]
        if not code:
            self.end()
            raise AssertionError("\n".join([f"not done after {seconds} s, or the interpreter has died", *said]))
        return _Ended(int(code), *said)

    def end(self) -> None:
        """Kills the interpreter and whatever it has forked."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        _imported.cache_clear()


@functools.cache
def _imported() -> _Imported:
    return _Imported()


def end_imported() -> None:
    """Ends the interpreter that tests are forked from, if there is one; the next test starts another."""
    if _imported.cache_info().currsize:
        _imported().end()


def on_simulator(
    *, torch: bool = False, fresh: bool = False, environment: dict[str, str] | None = None, **settings: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The decorated test runs in a child process on the simulator; `settings` as simnpu.environ() takes them.

    torch: the test uses torch and torch_npu, whose import takes its time. Without an environment or settings of its own
    such a test finds them imported, unless it asks for a fresh interpreter because import, fork or exit are tested.
    The test's parameters must be JSON-able.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        if os.environ.get(_IN_CHILD):
            return test

        @functools.wraps(test)
        def run(**parameters: Any) -> None:
            task = json.dumps([test.__module__, test.__name__, parameters])
            seconds = TORCH_SECONDS if torch else NATIVE_SECONDS
            if torch and not (fresh or environment or settings):
                ended = _imported().run(task, seconds)
            else:
                ended = _in_fresh(task, simnpu.environ(**settings) | (environment or {}) | {_IN_CHILD: "1"}, seconds)
            output = f"{ended.stdout}\n{ended.stderr}"
            assert ended.code == 0, f"the test's process ended with {ended.code}:\n{output}"
            assert ended.stdout.endswith("test finished\n"), f"the test's process ended early:\n{output}"

        # pytest reads parameters from the signature.
        run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
        return run

    return decorate


def _outputs(directory: str) -> tuple[Path, Path]:
    return Path(directory, "stdout"), Path(directory, "stderr")


def _next_task() -> str:
    """Returns once per task, each time in a process of its own. The parent never returns: it ends with its stdin."""
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever an import prints is no answer
    import pytest  # noqa: F401 - every test's module does
    import torch
    import torch_npu  # noqa: F401

    assert not torch.npu.is_initialized()
    gc.freeze()  # shared with the children
    for line in sys.stdin:
        task, directory = json.loads(line)
        child = os.fork()
        if child == 0:
            os.close(answers)
            for number, path in enumerate(("/dev/null", *map(str, _outputs(directory)))):
                file = os.open(path, os.O_RDWR | os.O_CREAT)
                os.dup2(file, number)
                os.close(file)
            return task
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(answers, f"{code}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    from harness.inside import collecting

    sys.path.append(str(ROOT / "tests"))
    collecting.rarely()
    module, name, parameters = json.loads(sys.argv[1] if len(sys.argv) > 1 else _next_task())
    getattr(importlib.import_module(module), name)(**parameters)
    print("test finished", flush=True)
