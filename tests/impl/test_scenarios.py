"""Each scenario runs in a fresh interpreter without site, once as threads usually switch and once as often as they can:
the mechanisms are process-wide, and a trigger cannot be taken back."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deadlines import HANG

HERE = Path(__file__).parent
IMPL = HERE.parents[1] / "impl"

SCENARIOS = [
    pytest.param(file, node.name, id=f"{file.stem.removesuffix('_scenarios')}-{node.name}")
    for file in sorted(HERE.glob("*/*_scenarios.py"))
    for node in ast.parse(file.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
]


@pytest.mark.parametrize("switch", ["0", "1e-6"], ids=["usual", "eager"])
@pytest.mark.parametrize(("file", "name"), SCENARIOS)
def test_scenario(file: Path, name: str, switch: str, tmp_path: Path) -> None:
    support = HERE / "core/core_support.py"
    places = [str(place) for place in (file.parent, support.parent, IMPL)]
    ended = subprocess.run(
        [sys.executable, "-S", "-s", "-W", "ignore", str(support), file.stem, name, switch],
        env={"PYTHONPATH": os.pathsep.join(places), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )
    assert ended.returncode == 0, ended.stderr
