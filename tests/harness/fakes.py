"""Puts the fake packages together, and the device that goes with them: a Python module of a few lines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness import devices, header

FAUX = Path(__file__).parent.parent / "faux"
CASES = FAUX / "cases"
REPOSITORY = Path(__file__).parent.parent.parent


def _unchanged(base: Mapping[str, str]) -> dict[str, str]:
    return dict(base)


def faux_device(prepare: bool = False) -> devices.Device:  # noqa: ARG001 - nothing to build
    return devices.Device("faux", "faux 1", 2, frozenset({"ops", "graph"}), _unchanged, "faux_device")


def compose(name: str, directory: Path) -> Path:
    """A directory that holds the fake's torch and torch_npu with their metadata, as site-packages would."""
    target = directory / name
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(FAUX / "_base", target, ignore=ignore)
    shutil.copytree(FAUX / name, target, ignore=ignore, dirs_exist_ok=True)
    return target


def point(file: str, **params: Any) -> header.Point:
    """The point of a case below tests/faux/cases that has these parameters."""
    (found,) = [point for point in header.read(CASES / file).points() if dict(point.params) == params]
    return found


Judge = Callable[..., Any]
Write = Callable[..., Path]
"""write(body) -> path of a case with that body."""
Run = Callable[..., Any]
"""run(body) -> result of a case with that body."""


def by_hand(path: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), **env}
    command = [sys.executable, str(path), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1800)


CONFTEST = f"""
import sys

sys.path.insert(0, {str(Path(__file__).parent)!r})

from fakes import faux_device
from harness import devices

devices.DEVICES["faux"] = faux_device


def pytest_sessionfinish(session):
    # A judge that loads what it judges would share its fate.
    assert not [name for name in ("torch", "torch_npu", "faux_device") if name in sys.modules]
    if "cases" in session.config.args:
        assert getattr(session.config.option, "maxworkerrestart", "0") == "0"
"""


class Suite:
    """A copy of the cases with a fake beside it, and pytest on it."""

    def __init__(self, pytester: pytest.Pytester, fake: str) -> None:
        self.pytester = pytester
        self.path = pytester.path
        shutil.copytree(CASES, self.path / "cases", ignore=shutil.ignore_patterns("__pycache__"))
        compose(fake, self.path / "fakes")
        self.options = ["--device=faux", f"--subject-path=fakes/{fake}", "-p", "no:cacheprovider"]
        pytester.makeconftest(CONFTEST)
        pytester.makeini("[pytest]\nxfail_strict = true\nfilterwarnings = error\n")

    def expect(self, text: str) -> None:
        file = self.path / "expectations/stock/2.99.0.toml"
        file.parent.mkdir(parents=True)
        file.write_text(text.lstrip())

    def add(self, name: str, body: str, header: str = "") -> Path:
        """Write a case into cases/added/case."""
        path = self.path / "cases/added/case" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'"""An added rule."""\n# /// script\n# [tool.conformance]\n'
            f'# level = "must"\n{header}# ///\nfrom harness import probe\n{body}\n'
        )
        return path

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess(*self.options, *arguments, no_reraise_ctrlc=True)

    def apart(self, *arguments: str) -> pytest.RunResult:
        """In a process of its own, as xdist needs it."""
        return self.pytester.runpytest_subprocess(*self.options, *arguments)

    def report(self) -> dict[str, Any]:
        return json.loads((self.path / "build/conformance/report.json").read_text())

    def outcomes(self) -> dict[str, str]:
        return {point["id"]: point["outcome"] for rule in self.report()["rules"] for point in rule["points"]}
