"""torch.distributed's internals that HCCL and the NPU launcher depend on are replaced by `import torch_npu`.

These are the parts that DistributedDataParallel, the all-gather autograd function and torchrun reach without naming
them.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.10"
# ///

import inspect

import torch
import torch.distributed.launcher.api
import torch_npu
from harness import probe

import torch.distributed.nn.functional as functional
from torch.distributed.fsdp import sharded_grad_scaler

c10d, launcher = torch.distributed.distributed_c10d, torch.distributed.launcher.api
parts = {
    "torch._C._distributed_c10d._verify_params_across_processes": (
        torch._C._distributed_c10d._verify_params_across_processes,
        torch_npu.distributed._verify_params_across_processes,
    ),
    "torch.distributed.nn.functional._AllGatherBase.backward": (
        functional._AllGatherBase.backward,
        torch_npu.distributed.nn.functional._allgather_base_backward_hccl,
    ),
    "the function inside the wrapper of distributed_c10d.rendezvous": (
        inspect.unwrap(c10d.rendezvous),
        torch.distributed.rendezvous,
    ),
    "sharded_grad_scaler.ShardedGradScaler": (
        sharded_grad_scaler.ShardedGradScaler,
        torch_npu.npu.amp.sharded_grad_scaler._ShardedGradScaler,
    ),
}
probe.equal([what for what, (found, ours) in parts.items() if found is not ours], [], "parts that were not replaced")
wrapped = {"rendezvous": c10d.rendezvous, "_get_addr_and_port": launcher._get_addr_and_port}
bare = [name for name, function in wrapped.items() if inspect.unwrap(function) is function]
probe.equal(bare, [], "functions that are not wrapped")
home = inspect.unwrap(launcher._get_addr_and_port).__module__
probe.equal(home, "torch.distributed.launcher.api", "home of the wrapped _get_addr_and_port")
probe.compilers_absent()
