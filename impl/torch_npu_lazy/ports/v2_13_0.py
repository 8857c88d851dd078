"""torch_npu 2.13.0 on torch 2.13.0: lazy already, with a package `_init` that imports, registers and patches."""

from __future__ import annotations

from torch_npu_lazy.ports import Port

PORT = Port(
    torch_npu="2.13.0",
    torch="2.13.0",
    amended=[
        "torch_npu.utils._dynamo",
    ],
)
