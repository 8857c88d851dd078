"""What separates a fresh interpreter from the machine: an environment made from an allow-list, so that nothing in
somebody's shell changes a verdict, and directories of its own that vanish with it."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

from .devices import Device
from .header import Point
from .inside.protocol import CALLS, CONTROL, MARKER, PARENT, POINT, PREAMBLE, SOAK, SUITE, TIMEOUT
from .subjects import Installed

KEPT = ("PATH", "LANG", "TZ", "OMP_NUM_THREADS")
KEPT_PREFIXES = ("LC_", "OPENBLAS_")

FIXED = {
    # One point uses one core; -n says how many run at once.
    "OMP_NUM_THREADS": "1",
    # A rule that holds only for some orders of a set would flake. A gate must say the same thing twice.
    "PYTHONHASHSEED": "0",
    # For interpreters that a case starts itself; the case's own dumps go to a file.
    "PYTHONFAULTHANDLER": "1",
    # A case imports torch and torch_npu in the order that it judges, and turns this on where it judges autoload. The
    # probe sets it for a case that is run by hand.
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    # NPU Inductor starts a pool of compile workers when it is loaded, each of which imports torch. A case that judges
    # that turns it on.
    "TORCH_WARM_POOL": "0",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    # Which of a kernel's tilings is the quickest is not judged, and each costs a compilation.
    "FAST_RUN_WITH_MAX_TILING_NUM": "1",
}

PRIVATE = {
    "HOME": "home",
    "TMPDIR": "tmp",
    "XDG_CACHE_HOME": "home/.cache",
    "XDG_CONFIG_HOME": "home/.config",
    "XDG_DATA_HOME": "home/.local/share",
    "XDG_STATE_HOME": "home/.local/state",
    "XDG_RUNTIME_DIR": "run",
    "TORCHINDUCTOR_CACHE_DIR": "cache/inductor",
    "TRITON_CACHE_DIR": "cache/triton",
    "TRITON_HOME": "cache/triton-home",
    "TORCH_EXTENSIONS_DIR": "cache/extensions",
    "ASCEND_PROCESS_LOG_PATH": "log",
}
WORK = "work"
FOLDERS = (*PRIVATE.values(), WORK)
EVIDENCE = "imported-torch-npu"
CONTROL_PATH = Path(__file__).parent / "inside/control"
"""Holds a torch_npu that cannot be imported."""


def make(
    point: Point,
    installed: Installed,
    device: Device,
    root: Path,
    *,
    control: bool = False,
    soak: str | None = None,
    run: str = "",
) -> dict[str, str]:
    """The whole environment of the child that runs `point` with its scratch directory `root`: the subject's, or that of
    a control, in which no torch_npu can be imported. `soak` is the seed of delays; `run` marks the run's processes."""
    base = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
    base = {**FIXED, **base}
    base.update({name: str(root / folder) for name, folder in PRIVATE.items()})
    paths = [*([CONTROL_PATH] if control else []), *([installed.path] if installed.path is not None else [])]
    if paths:
        base["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    environment = device.environ(base)
    environment[MARKER] = f"{run}.{uuid.uuid4().hex}"
    environment[POINT] = json.dumps(dict(point.params))
    environment[SUITE] = str(point.case.suite)
    environment[TIMEOUT] = str(point.case.timeout)
    environment[PARENT] = str(os.getpid())
    if control:
        environment[CONTROL] = str(root / EVIDENCE)
    elif installed.subject.preamble is not None:
        environment[PREAMBLE] = installed.subject.preamble
    if soak is not None:
        environment[SOAK] = soak
    if device.calls is not None:
        environment[CALLS] = device.calls
    return environment
