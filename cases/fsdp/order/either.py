"""FSDP has its NPU parts whether torch.distributed.fsdp is imported before or after torch_npu.

Training scripts import FSDP first as often as not. A gradient scaler that is torch's own looks for infinities on CUDA
tensors and misses them on an NPU; the loss scale then never comes down.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["fsdp_before", "submodules_before", "fsdp_after", "fsdp_alone"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import os

from harness import probe

match probe.param("order"):
    case "fsdp_before":
        import torch.distributed.fsdp
        from torch.distributed.fsdp import fully_shard as bound_before
    case "submodules_before":
        import torch.distributed.fsdp._fully_shard
        import torch.distributed.fsdp.sharded_grad_scaler
    case "fsdp_alone":
        os.environ.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)  # unset means on, as on a user's machine
        import torch.distributed.fsdp  # torch's autoload has brought torch_npu in
if probe.param("order") == "fsdp_alone":
    probe.modules.present("torch_npu")
else:
    probe.modules.absent("torch_npu")

import torch_npu

probe.compilers_absent()
import torch.distributed.fsdp
from torch.distributed.fsdp import fully_shard, sharded_grad_scaler

probe.same(sharded_grad_scaler.ShardedGradScaler, torch_npu._ShardedGradScaler, "ShardedGradScaler")
probe.check(issubclass(torch_npu._ShardedGradScaler, torch_npu.npu.amp.GradScaler), "it is an NPU gradient scaler")
probe.check(callable(fully_shard), "fully_shard is callable")
if probe.param("order") == "fsdp_before":
    probe.same(fully_shard, bound_before, "fully_shard bound before torch_npu")
probe.device_untouched()
