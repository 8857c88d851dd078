"""What the judged package did to the device: the simulator counts every call into the device runtime; on a real NPU
only the mapped libraries and the opened device nodes can be seen."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from ..protocol import CALLS
from . import libraries
from ._session import Unsupported, session

OPERATOR_LIBRARY = "libopapi"

# Asking how many devices there are, or which chip, is no touch. These make a device busy, or give something on it.
TOUCHING = (
    "aclrtSetDevice",
    "aclrtCreateContext",
    "aclrtCreateStream",
    "aclrtCreateEvent",
    "aclrtCreateNotify",
    "aclrtMalloc",
    "aclrtMemcpy",
    "aclrtMemset",
    "aclrtReserveMemAddress",
    "aclrtLaunch",
    "aclrtSynchronize",
    "aclnn",
    "aclopExecute",
    "HcclCommInit",
)


def device_calls() -> dict[str, int]:
    """How many calls into the device runtime this process has made since it started: {"aclrtMalloc": 3}. A name may be
    missing that was never called. Raises Unsupported where nobody counts (a real NPU)."""
    counted = _counts()
    if counted is None:
        reason = "this device keeps no count of calls (the simulated one does: --device sim)"
        session().unsupported(reason)
        raise Unsupported(reason)
    return counted


def device_untouched(*, operators: bool = False) -> None:
    """Check that no device was set, no context, stream or event made, nothing allocated, no operator library loaded.

    operators: the library may be loaded, as it is to be asked whether it has an operator. Where nobody counts calls,
    open device nodes and mapped libraries alone are looked at. Raises CheckFailed.
    """
    calls = _counts() or {}
    touched = {name: times for name, times in sorted(calls.items()) if times and name.startswith(TOUCHING)}
    if touched:
        session().failed(
            "the device was touched",
            expected="no call that sets a device or makes a context, stream, event or allocation",
            found=", ".join(f"{name} x{times}" for name, times in touched.items()),
        )
    nodes = _open_nodes()
    if nodes:
        session().failed("a device node is open", expected="no /dev/davinci* open", found=", ".join(nodes))
    if not operators:
        libraries.absent(OPERATOR_LIBRARY)
    session().passed("the device is untouched")


def _counts() -> dict[str, int] | None:
    module = os.environ.get(CALLS)
    return dict(importlib.import_module(module).counts()) if module else None


def _open_nodes() -> list[str]:
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except FileNotFoundError:  # the descriptor of this very listing
            continue
        name = target.removeprefix("/dev/davinci")
        if name != target and name[:1].isdigit():
            found.add(target)
    return sorted(found)
