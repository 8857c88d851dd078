"""The mechanisms must be there before torch is, for every process of an environment: what they load is counted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from deadlines import HANG

IMPL = Path(__file__).parents[3] / "impl"

MODULES = ["events", "locks", "once", "trigger"]
ALLOWED = {
    "__future__",
    "torch_npu_lazy",
    "torch_npu_lazy.core",
    "torch_npu_lazy.activation",
    *(f"torch_npu_lazy.core.{name}" for name in MODULES),
}
"""Beyond what every interpreter has: sys, _thread, time and _frozen_importlib are built in, os comes with the start."""


def _run(program: str) -> str:
    start = f"import sys\nsys.path.insert(0, {str(IMPL)!r})\nimport os, time\nbefore = set(sys.modules)\n"
    ended = subprocess.run(
        [sys.executable, "-S", "-s", "-c", start + program],
        # Switched off, the package is the mechanisms alone.
        env={**os.environ, "TORCH_NPU_LAZY": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_loaded_but_themselves(module: str) -> None:
    loaded = _run(f"import torch_npu_lazy.core.{module}\nprint(*set(sys.modules) - before)").split()
    assert f"torch_npu_lazy.core.{module}" in loaded
    assert set(loaded) <= ALLOWED


def test_importing_them_changes_nothing() -> None:
    assert (
        _run(
            "path, hooks = list(sys.meta_path), list(sys.path_hooks)\n"
            "registered = []\n"
            "os.register_at_fork = lambda **handlers: registered.append(handlers)\n"
            + "".join(f"import torch_npu_lazy.core.{name}\n" for name in MODULES)
            + "print(sys.meta_path == path, sys.path_hooks == hooks, registered, 'threading' in sys.modules)\n"
        )
        == "True True [] False\n"
    )


def test_a_settled_call_runs_one_frame_and_takes_no_lock() -> None:
    """Counted in calls, not in time: nothing below the wrapper itself."""
    assert (
        _run(
            "from torch_npu_lazy.core.once import run_once\n"
            "setup = run_once(lambda: None)\n"
            "setup()\n"
            "calls = []\n"
            "sys.setprofile(lambda frame, event, argument: calls.append(event))\n"
            "setup()\n"
            "sys.setprofile(None)\n"
            "print(calls)\n"
        )
        == "['call', 'return', 'c_call']\n"
    )
