"""What is imported in the interpreter under test comes from harness/inside: the rest of the harness cannot be imported
there, and needs of it no more than the names that both sides know."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import REPOSITORY, Run, Write, by_hand

HARNESS = REPOSITORY / "harness"
INSIDE = HARNESS / "inside"
ENTRY = {"harness.probe", "harness.by_hand"}
"""Where `from harness import probe` begins by hand and in nested interpreters; gone when the case goes on."""

TRY = """
import harness, importlib, sys

found = [f"imported {name}" for name in sys.modules if name.startswith("harness.") and name != "harness.probe"
         and not sys.modules[name].__file__.startswith(INSIDE)]
for name in OUTSIDE:
    try:
        importlib.import_module(f"harness.{name}")
    except ModuleNotFoundError as error:
        found += [] if error.name.startswith("harness.") else [f"{name} needs {error.name}"]
    else:
        found.append(f"can import {name}")
    found += [f"has {name}"] if hasattr(harness, name) else []
if not probe.__file__.startswith(INSIDE):
    found.append(f"the probe is {probe.__file__}")
"""


def module(path: Path) -> str:
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[str]:
    """Names of modules of the harness that a file imports, of packages and of what stands in them alike."""
    package = module(path).split(".")[: None if path.name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "harness")
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            if name.split(".")[0] == "harness":
                yield from (f"{name}.{alias.name}" for alias in node.names)


@pytest.fixture
def attempts() -> str:
    outside = [path.stem for path in HARNESS.glob("*.py") if module(path) not in {"harness", "harness.probe"}]
    assert {"runner", "header", "plugin"} < set(outside)
    return f"INSIDE = {str(INSIDE)!r}\nOUTSIDE = {[*outside, 'report', 'inside']}\n{TRY}"


def test_inside_imports_nothing_of_outside() -> None:
    files = sorted(INSIDE.rglob("*.py"))
    seen = [(path.name, name) for path in files for name in imports(path)]
    assert ("_session.py", "harness.inside.protocol.POINT") in seen
    assert [pair for pair in seen if not pair[1].startswith("harness.inside.")] == []


def test_outside_imports_of_inside_only_the_protocol() -> None:
    files = [path for path in HARNESS.rglob("*.py") if INSIDE not in path.parents and module(path) not in ENTRY]
    seen = {name for path in files for name in imports(path) if name.startswith("harness.inside")}
    assert "harness.inside.protocol.POINT" in seen
    shared = ("harness.inside.protocol.", "harness.inside.sealing.")
    assert {name for name in seen if not name.startswith(shared)} == set()


def test_a_case_cannot_import_what_is_outside(run: Run, attempts: str) -> None:
    result = run(f"{attempts}\nprobe.equal(found, [], 'what can be had of outside')")
    assert (result["outcome"], result["failure"]) == ("pass", None)


def test_nor_can_an_interpreter_that_a_case_starts(run: Run, attempts: str) -> None:
    nested = f"from harness import probe\n{attempts}\nprint(found)"
    result = run(f"probe.equal(probe.python({nested!r}).stdout, '[]\\n', 'what can be had of outside')")
    assert (result["outcome"], result["failure"]) == ("pass", None)


def test_nor_can_a_case_by_hand(write: Write, attempts: str) -> None:
    done = by_hand(write(f"{attempts}\nprobe.equal(found, [], 'what can be had of outside')"), "order=a")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
