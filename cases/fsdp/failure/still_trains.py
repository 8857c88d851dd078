"""When torch_npu's part of FSDP fails to go in, FSDP can still be imported and trains right, in torch_npu's form too.

The failure may come inside the import (a module that FSDP keeps its scaler in is blocked) or inside the first call of
torch_npu's fully_shard, half-way through its replacements. The cause is gone afterwards.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 300
# releases = ">=2.10"
# ///

import copy
import sys

from harness import probe

import torch
import torch.distributed as dist


def train(fully_shard, what):
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    model = copy.deepcopy(plain)
    mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
    for turn in ("first", "second"):
        x = torch.randn(3, 4)
        wanted, got = plain(x), model(x)
        probe.close(got.detach(), wanted.detach(), f"{what}: output of the {turn} step")
        wanted.square().sum().backward()
        got.square().sum().backward()
        for (name, left), right in zip(plain.named_parameters(), model.parameters(), strict=True):
            probe.close(right.grad.full_tensor(), left.grad, f"{what}: gradient of {name} in the {turn} step")


def begin():
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())


def inside_the_import():
    blocked = "torch.distributed.fsdp.sharded_grad_scaler"
    sys.modules[blocked] = None
    try:
        import torch_npu
    except ImportError as error:
        probe.note("import torch_npu, with the module blocked, says", str(error))
    del sys.modules[blocked]
    import torch.distributed.fsdp
    import torch.distributed.fsdp.sharded_grad_scaler

    begin()
    train(torch.distributed.fsdp.fully_shard, "after a failed import")


def inside_the_call():
    import torch_npu.distributed.fsdp
    from torch.distributed.fsdp._fully_shard import _fsdp_collectives

    begin()
    reduce = _fsdp_collectives.foreach_reduce
    del _fsdp_collectives.foreach_reduce
    try:
        torch_npu.distributed.fsdp.fully_shard(torch.nn.Linear(4, 4))
    except AttributeError as error:
        probe.note("fully_shard, with a part of FSDP missing, says", str(error))
    _fsdp_collectives.foreach_reduce = reduce
    train(torch.distributed.fsdp.fully_shard, "torch's form after a failed call")
    train(torch_npu.distributed.fsdp.fully_shard, "torch_npu's form after a failed call")


probe.forked(inside_the_import)
probe.forked(inside_the_call)
