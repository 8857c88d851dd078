"""A maintainer copies core/ into a branch: it works there under any name, and needs nothing of this package."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

from deadlines import HANG

CORE = Path(__file__).parents[3] / "impl/torch_npu_lazy/core"
INSIDE = {path.stem for path in CORE.glob("*.py")}

PROGRAM = """
import sys
from branch._lazy import events, once, trigger

@once.run_once(imports=["colorsys"])
def set_up():
    events.record("note", "the set-up")

watched = trigger.when_imported("colorsys", lambda _: set_up())
import colorsys
assert set_up.has_run and watched.settled
print(*sorted(name for name in sys.modules if "torch" in name), any("set_up" in line for line in events.explain()))
"""


def test_it_imports_nothing_from_outside_but_the_standard_library() -> None:
    for path in CORE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                named = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                named = {str(node.module)}
            elif isinstance(node, ast.ImportFrom):
                inside = {node.module} if node.module else {alias.name for alias in node.names}
                assert node.level == 1, f"{path.name}:{node.lineno}"
                assert inside <= INSIDE, f"{path.name}:{node.lineno}"
                continue
            else:
                continue
            outside = {name.partition(".")[0] for name in named} - sys.stdlib_module_names
            assert outside <= {"_frozen_importlib"}, f"{path.name}:{node.lineno}"


def test_a_copy_works_under_another_name(tmp_path: Path) -> None:
    shutil.copytree(CORE, tmp_path / "branch/_lazy", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "branch/__init__.py").touch()
    start = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["True"], ended.stdout
