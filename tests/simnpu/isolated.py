"""Runs a test function in a fresh process on the simulated NPU, with a time limit of its own.

A test that hangs, crashes or leaves the device in a bad state thus harms nobody else.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import simnpu

ROOT = Path(__file__).parents[2]
_IN_CHILD = "SIMNPU_TEST_CHILD"
TORCH_SECONDS = 120  # a loaded machine may take long to import torch
NATIVE_SECONDS = 60


def on_simulator(
    *, torch: bool = False, environment: dict[str, str] | None = None, **settings: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The decorated test runs in a child process on the simulator; `settings` as simnpu.environ() takes them.

    torch: the test imports torch, which takes its time. The test's parameters must be JSON-able.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        if os.environ.get(_IN_CHILD):
            return test

        @functools.wraps(test)
        def run(**parameters: Any) -> None:
            child_environment = simnpu.environ(**settings) | (environment or {}) | {_IN_CHILD: "1"}
            command = [sys.executable, __file__, test.__module__, test.__name__, json.dumps(parameters)]
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=child_environment,
                capture_output=True,
                text=True,
                timeout=TORCH_SECONDS if torch else NATIVE_SECONDS,
                check=False,
            )
            output = f"{done.stdout}\n{done.stderr}"
            assert done.returncode == 0, f"the test's process ended with {done.returncode}:\n{output}"
            assert done.stdout.endswith("test finished\n"), f"the test's process ended early:\n{output}"

        # pytest reads parameters from the signature.
        run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
        return run

    return decorate


if __name__ == "__main__":
    module, name, parameters = sys.argv[1:]
    getattr(importlib.import_module(module), name)(**json.loads(parameters))
    print("test finished", flush=True)
