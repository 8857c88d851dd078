"""Each scenario runs in a fresh interpreter without site, once as threads usually switch and once as often as they can:
the mechanisms are process-wide, and a trigger cannot be taken back."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import deferral_scenarios
import fork_scenarios
import once_scenarios
import promise_scenarios
import pytest
import trigger_scenarios

HERE = Path(__file__).parent
IMPL = HERE.parents[2] / "impl"

SCENARIOS = [
    pytest.param(module.__name__, name, id=f"{module.__name__.removesuffix('_scenarios')}-{name}")
    for module in (once_scenarios, trigger_scenarios, fork_scenarios, deferral_scenarios, promise_scenarios)
    for name, function in vars(module).items()
    if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
]


@pytest.mark.parametrize("switch", ["0", "1e-6"], ids=["usual", "eager"])
@pytest.mark.parametrize(("module", "name"), SCENARIOS)
def test_scenario(module: str, name: str, switch: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-S", "-s", "-W", "ignore", str(HERE / "core_support.py"), module, name, switch],
        env={"PYTHONPATH": os.pathsep.join([str(HERE), str(IMPL)]), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
