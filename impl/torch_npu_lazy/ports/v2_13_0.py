"""torch_npu 2.13.0 on torch 2.13.0: lazy already, with a package `_init` that imports, registers and patches."""

from __future__ import annotations

from torch_npu_lazy.ports import Port

PORT = Port(
    torch_npu="2.13.0",
    torch="2.13.0",
    amended=[
        "torch_npu._init.core._exports",
        "torch_npu.contrib",
        "torch_npu.distributed.distributed_c10d",
        "torch_npu.distributed.fsdp._add_fsdp_patch",
        "torch_npu.npu.streams",
        "torch_npu.utils.dlpack",
        "torch_npu.utils._dynamo",
    ],
)
