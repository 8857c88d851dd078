"""A name that releases without lazy initialisation have here, without loading the compiler for it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOVED = "NPUDeviceOpOverrides"


def __getattr__(name: str) -> Any:
    if name != _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from torch_npu._inductor.codegen.npu.device_op_overrides import NewNPUDeviceOpOverrides

    globals()[name] = NewNPUDeviceOpOverrides
    return NewNPUDeviceOpOverrides


def __dir__() -> list[str]:
    return sorted({*globals(), _MOVED})
