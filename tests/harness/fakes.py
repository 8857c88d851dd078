"""Puts the fake packages together, and the device that goes with them: a Python module of a few lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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


Judge = Callable[..., dict[str, Any]]
Write = Callable[..., Path]
"""write(body) -> path of a case with that body."""
Run = Callable[..., dict[str, Any]]
"""run(body) -> result of a case with that body."""


def by_hand(path: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), **env}
    command = [sys.executable, str(path), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
