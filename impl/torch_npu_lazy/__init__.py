"""Lazy initialisation for torch_npu, on top of its released wheels.

Importing this before torch and torch_npu activates it for the process; `enable()` does so for all processes of an
environment, as `python -m torch_npu_lazy enable` does. TORCH_NPU_LAZY=0 switches it off, as no, false and off do.
Costs under two milliseconds and loads nothing of torch: what there is to do is found out when torch_npu is imported.
"""

from __future__ import annotations

import os

from torch_npu_lazy.activation import disable, enable, status

__version__ = "0.1.0"
__all__ = ["disable", "enable", "status"]

if os.environ.get("TORCH_NPU_LAZY", "").strip().lower() not in ("0", "no", "false", "off"):
    from torch_npu_lazy.wheel import bootstrap

    bootstrap.activate()
