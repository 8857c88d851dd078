"""A model under fully_shard gives the outputs, gradients and weights of the plain model, in torch_npu's form too.

torch_npu's fully_shard changes how FSDP allocates, gathers and reduces. On one rank every step must come out as
without it.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["fsdp_before", "fsdp_after"] }
# timeout = 60
# releases = ">=2.10"
# ///

import copy
import importlib

from harness import probe

if probe.param("order") == "fsdp_before":
    import torch.distributed.fsdp

import torch_npu
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import torch.distributed.fsdp

dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
mesh = init_device_mesh("cpu", (1,))


def train(form, fully_shard):
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    model = copy.deepcopy(plain)
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)

    steps = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (plain, model)]
    for turn in ("first", "second"):
        x = torch.randn(3, 4)
        for step in steps:
            step.zero_grad()
        wanted, got = plain(x), model(x)
        probe.close(got.detach(), wanted.detach(), f"{form}: output of the {turn} step")
        wanted.square().sum().backward()
        got.square().sum().backward()
        for (name, left), right in zip(plain.named_parameters(), model.parameters(), strict=True):
            probe.close(right.grad.full_tensor(), left.grad, f"{form}: gradient of {name} in the {turn} step")
        for step in steps:
            step.step()
        for (name, left), right in zip(plain.named_parameters(), model.parameters(), strict=True):
            probe.close(right.full_tensor().detach(), left.detach(), f"{form}: {name} after the {turn} step")


# torch's own form first: the first call of torch_npu's changes FSDP for the process.
train("torch", torch.distributed.fsdp.fully_shard)
train("torch_npu", importlib.import_module("torch_npu.distributed.fsdp").fully_shard)
dist.destroy_process_group()
