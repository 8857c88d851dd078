"""Settings of NPU Inductor. Those of NPU graphs are needed without it, too, and without Triton, which the wheel's body
asks for the properties of the device."""

from __future__ import annotations

import torch
import torch_npu._inductor.config as this
from torch.utils._triton import has_triton_package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_wheel: Any = this.__spec__.loader_state


class _GraphTrees:
    """disable_cpu_input_check: whether graphs may have inputs on the CPU."""

    _disabled = False

    @property
    def disable_cpu_input_check(self) -> bool:
        return self._disabled

    @disable_cpu_input_check.setter
    def disable_cpu_input_check(self, value: object) -> None:
        self._disabled = bool(value)
        if self._disabled:
            # Replays would assert that all inputs are on the device.
            torch._inductor.config.triton.slow_path_cudagraph_asserts = False


npugraph_trees = _GraphTrees()

if has_triton_package():
    _wheel.exec_module(this)
