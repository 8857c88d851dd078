"""What the subject runs on: the simulated NPU or a real one, what each can do, and the environment that selects it."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import Version

from .header import COUNTED
from .subjects import Installed, Unavailable

CANN_VARIABLES = ("ASCEND_", "LD_LIBRARY_PATH", "ATB_", "HCCL_", "NPU_")
"""Prefixes of what CANN's set_env.sh exports and its libraries read."""


@dataclass(frozen=True)
class Device:
    """`environ` turns the child's base environment into one that finds the device. `detail` is its build or version.

    `calls` is the module whose counts() tells the calls into the device runtime, for a device that counts them.
    """

    name: str
    detail: str
    count: int
    abilities: frozenset[str]
    environ: Callable[[Mapping[str, str]], dict[str, str]]
    calls: str | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Why it has not what it could have, by capability, with the remedy."""


SIMULATOR_VARIABLES = ("SIMNPU_DEVICES", "SIMNPU_MEMORY", "SIMNPU_LOG")
"""What a user may choose. Not SIMNPU_FAULT: a fault left in somebody's shell would fail rules at random places."""

SEARCHED = ("PATH", "PYTHONPATH")


def _sim(prepare: bool) -> Device:
    try:
        import simnpu
        from simnpu.build import BuildError, build, say_on_stderr
        from simnpu.settings import SettingError
        from simnpu.toolchain import surroundings as kernels
    except ImportError as error:
        raise Unavailable(f"the simulated NPU cannot be imported ({error}); install this project: make setup") from None
    settings = {name: os.environ[name] for name in SIMULATOR_VARIABLES if name in os.environ}

    @functools.cache
    def surroundings() -> dict[str, str]:
        # Once per process: every point of a run sees the same build, and nobody hashes its sources 400 times.
        return simnpu.environ({**settings, **dict.fromkeys(SEARCHED, "")})

    def environ(base: Mapping[str, str]) -> dict[str, str]:
        found = surroundings()
        # The simulator's directories come first, and the child's own stay.
        joined = {name: [part for part in (found[name], base.get(name)) if part] for name in SEARCHED}
        return {**base, **found, **{name: os.pathsep.join(parts) for name, parts in joined.items() if parts}}

    try:
        if prepare:
            build()
            base = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
            kernels.prepare(environ({**base, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}), say_on_stderr)
        detail = simnpu.build_id()
        lacks = kernels.missing()
    except (BuildError, SettingError) as error:
        raise Unavailable(f"the simulated NPU cannot be used: {error}") from None
    return Device(
        name="sim",
        detail=detail,
        count=int(settings.get("SIMNPU_DEVICES") or 2),
        abilities=frozenset({"ops", "graph", "hccl", *(() if lacks else ("kernels",))}),
        environ=environ,
        calls="simnpu.calls",
        lacks=dict.fromkeys(("kernels", "triton"), lacks) if lacks else {},
    )


def _npu(prepare: bool) -> Device:  # noqa: ARG001 - nothing to build
    home, nodes = _cann(), _nodes()
    if home is None:
        raise Unavailable("no CANN found; source its set_env.sh (it sets ASCEND_HOME_PATH), or use --device sim")
    if not nodes:
        raise Unavailable(
            "no /dev/davinci* device node; load the NPU driver and check the container, or use --device sim"
        )

    def environ(base: Mapping[str, str]) -> dict[str, str]:
        return {**base, **{name: value for name, value in os.environ.items() if name.startswith(CANN_VARIABLES)}}

    return Device(
        name="npu",
        detail=f"CANN {_cann_version(home)}",
        count=len(nodes),
        abilities=frozenset({"ops", "graph", "hccl", "kernels"}),
        environ=environ,
    )


DEVICES: dict[str, Callable[[bool], Device]] = {"sim": _sim, "npu": _npu}


def find(name: str | None, prepare: bool = False) -> Device:
    """The named device, or by itself `npu` when CANN and a device node are there, else `sim`.

    With `prepare` the simulator is built if need be, telling its progress on stderr. Raises Unavailable.
    """
    chosen = name or ("npu" if _cann() is not None and _nodes() else "sim")
    if chosen not in DEVICES:
        raise Unavailable(f"unknown device {chosen!r}; known are {', '.join(DEVICES)}")
    return DEVICES[chosen](prepare)


def add_options(add: Callable[..., Any]) -> None:
    """The options that choose subject and device; `add` is argparse's add_argument, or pytest's addoption."""
    add("--subject", default="stock", help="what is judged: stock (default) or reference")
    add(
        "--subject-path",
        type=Path,
        metavar="DIR",
        help="directory searched for torch and torch_npu before the installed packages",
    )
    add("--device", help="sim or npu; without it npu when CANN and a device node are present, else sim")


def _cann() -> Path | None:
    home = os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME")
    return Path(home) if home and Path(home).is_dir() else None


def _nodes() -> list[Path]:
    return sorted(node for node in Path("/dev").glob("davinci*") if re.fullmatch(r"davinci\d+", node.name))


def _cann_version(home: Path) -> str:
    for file in (home / "version.cfg", home / "compiler" / "version.info", home / "runtime" / "version.info"):
        if file.is_file():
            found = re.search(r"\d+\.\d+[\w.]*", file.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found[0]
    return f"of unknown version at {home}"


def missing(need: str, device: Device, installed: Installed) -> str | None:
    """Why a capability is not there, or None when it is. `need` is one that header.read accepts."""
    counted = COUNTED.fullmatch(need)
    if counted:
        what, wanted = counted[1], counted[3]
        if what == "devices":
            return None if device.count >= int(wanted) else f"{device.name} has {device.count}"
        has = installed.torch if what == "torch" else "{}.{}".format(*sys.version_info)
        return None if Version(Version(has).base_version) >= Version(wanted) else f"this is {has}"
    if need in device.lacks:
        return device.lacks[need]
    if need in {"onnx", "onnxscript", "onnxruntime", "triton"}:
        return None if installed.has(need) else f"the package {need} is not installed"
    if need == "torchair":
        return None if installed.has("torch_npu.dynamo.torchair") else "this torch_npu ships no torchair"
    return None if need in device.abilities else f"device {device.name} has none"
