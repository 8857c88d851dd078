"""DTensor knows the NPU's operators in either import order, with no compiler loaded, and computes right with them.

Tensor-parallel training calls them on sharded tensors; an operator without a strategy is refused at the first layer.
The experimental part with context_parallel must come without a compiler, too.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["torch_npu_first", "dtensor_first"] }
# needs = ["ops", "hccl"]
# timeout = 90
# releases = ">=2.9"
# ///

import importlib
import importlib.util
import warnings

from harness import probe

orders = {
    "torch_npu_first": ["torch_npu", "torch.distributed.tensor"],
    "dtensor_first": ["torch.distributed.tensor", "torch_npu"],
}
for name in orders[probe.param("order")]:
    importlib.import_module(name)

import torch
import torch.distributed as dist
import torch_npu
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

EXPERIMENTAL = "torch_npu.distributed.tensor.experimental"
if torch.__version__ >= "2.12" or importlib.util.find_spec(EXPERIMENTAL):  # some earlier wheels have no such part
    probe.check(callable(importlib.import_module(EXPERIMENTAL).context_parallel), "context_parallel is callable")
known = DTensor._op_dispatcher.sharding_propagator.op_strategy_funcs
operators = ("npu_rms_norm", "npu_fusion_attention", "npu_rotary_mul")
unknown = [name for name in operators if getattr(torch.ops.npu, name).default not in known]
probe.equal(unknown, [], "NPU operators without a strategy")
probe.compilers_absent()
probe.device_untouched()

warnings.simplefilter("ignore")
torch.npu.set_device(0)
dist.init_process_group("hccl", rank=0, world_size=1, store=dist.HashStore())
mesh = dist.device_mesh.init_device_mesh("npu", (1,))
torch.manual_seed(0)
x, weight = torch.randn(4, 8), torch.rand(8)
wanted = x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight
for placement in (Shard(0), Replicate()):
    sharded = distribute_tensor(x.npu(), mesh, [placement])
    result, _ = torch_npu.npu_rms_norm(sharded, distribute_tensor(weight.npu(), mesh, [Replicate()]))
    probe.check(isinstance(result, DTensor), f"the result for {placement} is a DTensor")
    probe.equal(result.placements, (placement,), f"placement of the result for {placement}")
    probe.close(result.full_tensor(), wanted, f"normalised x for {placement}", rtol=1e-5)
dist.destroy_process_group()
