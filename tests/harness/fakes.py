"""Puts the fake packages together, and the device that goes with them: a Python module of a few lines."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness import devices, header

FAUX = Path(__file__).parent.parent / "faux"
CASES = FAUX / "cases"


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
