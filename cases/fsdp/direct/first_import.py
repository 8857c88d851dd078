"""`import torch_npu.distributed.fsdp` works as the first import, gives fully_shard, and applies the same patches.

Model code names the NPU form directly. Like any sub-module it must import what it builds on, torch's FSDP, by itself.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.10"
# ///

from harness import probe

import torch_npu.distributed.fsdp
from torch_npu.distributed.fsdp import fully_shard

import torch_npu

by_name = __import__("torch_npu.distributed.fsdp", fromlist=["fully_shard"])
probe.same(torch_npu.distributed.fsdp, by_name, "torch_npu.distributed.fsdp as an attribute")
probe.same(by_name.fully_shard, fully_shard, "fully_shard by both spellings")

from torch.distributed.fsdp import sharded_grad_scaler

probe.check(callable(fully_shard), "fully_shard is callable")
probe.equal(fully_shard.__module__, "torch_npu.distributed.fsdp", "home of fully_shard")
probe.same(sharded_grad_scaler.ShardedGradScaler, torch_npu._ShardedGradScaler, "ShardedGradScaler")
probe.modules.present("torch.distributed.fsdp")
probe.compilers_absent()
probe.device_untouched()
