"""Names that have moved: the patches that need no compiler to `_rng_prims_patch`, the device's part in Inductor's code
to where Inductor is loaded."""

from __future__ import annotations

from torch_npu.utils._rng_prims_patch import (  # type: ignore[import-not-found]  # noqa: F401
    _max_unpoolnd_patch,
    apply_rng_prims_patches,
    patch_philox_rand_offset,
    patch_register_philox_rand,
    patch_register_run_and_save_rng_state_op,
    patch_register_run_with_rng_state_op,
    patch_rng_prims_device,
)
from torch_npu_lazy.core.trigger import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_MOVED = "NPUDeviceOpOverrides"


def __getattr__(name: str) -> Any:
    if name != _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from torch._inductor.codegen.common import DeviceOpOverrides

    class NPUDeviceOpOverrides(DeviceOpOverrides):
        """The lines that Inductor's generated code handles an NPU with."""

        def import_get_raw_stream_as(self, name: str) -> str:
            return f"from torch_npu._C import _npu_getCurrentRawStream as {name}"

        def set_device(self, device_idx: int) -> str:
            return f"torch_npu.npu.set_device({device_idx})"

        def synchronize(self) -> str:
            return "torch_npu.npu.synchronize()"

        def device_guard(self, device_idx: int) -> str:
            return f"torch_npu.npu._DeviceGuard({device_idx})"

    return globals().setdefault(name, NPUDeviceOpOverrides)


def _inductor_register_device_op_overrides() -> None:
    """Called by a package file that is not lazy. Inductor's table is filled when Inductor makes one."""
    when_imported("torch._inductor.codegen.common", _register_overrides, again=_register_overrides)


def _register_overrides(common: ModuleType) -> None:
    common.register_device_op_overrides("npu", __getattr__(_MOVED)())
