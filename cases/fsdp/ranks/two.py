"""A model under fully_shard on two NPU ranks trains as the plain model does in one process on the whole batch.

Each rank takes half of the batch; gathers and reductions go through HCCL. Judged with torch's fully_shard bound before
torch_npu was imported, as in many training scripts, and with torch_npu's own form.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { form = ["torch_bound_before", "torch_npu"] }
# needs = ["ops", "hccl", "devices>=2"]
# timeout = 300
# releases = ">=2.10"
# ///

import copy
import datetime
import importlib
from pathlib import Path

from harness import probe

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import torch_npu

if probe.param("form") == "torch_npu":
    fully_shard = importlib.import_module("torch_npu.distributed.fsdp").fully_shard

RANKS, STEPS, RATE = 2, 3, 0.1
STORE = str(Path.cwd() / "store")


def model_and_batches():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    return model, [torch.randn(RANKS * 4, 6) for _ in range(STEPS)]


def train(model, batches, whole):
    """Plain gradient descent; per step the gradients, and the weights after it, as tensors on the CPU."""
    history = []
    for batch in batches:
        model(batch).square().mean().backward()
        with torch.no_grad():
            gradients = {name: whole(weight.grad) for name, weight in model.named_parameters()}
            for weight in model.parameters():
                weight.sub_(RATE * weight.grad)
                weight.grad = None
            history.append((gradients, {name: whole(weight) for name, weight in model.named_parameters()}))
    return history


def on_rank(rank):
    torch.npu.set_device(rank)
    store = dist.FileStore(STORE, RANKS)
    limit = datetime.timedelta(seconds=60)
    dist.init_process_group("hccl", store=store, rank=rank, world_size=RANKS, timeout=limit)
    model, batches = model_and_batches()
    model.to("npu")
    mesh = dist.device_mesh.init_device_mesh("npu", (RANKS,))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    sharded = {name: weight.to_local().numel() < weight.numel() for name, weight in model.named_parameters()}
    mine = [batch.chunk(RANKS)[rank].to("npu") for batch in batches]
    history = train(model, mine, lambda tensor: tensor.full_tensor().cpu())
    dist.destroy_process_group()
    lists = [[{name: tensor.tolist() for name, tensor in part.items()} for part in step] for step in history]
    return sharded, lists


ranks = [probe.thread(probe.forked, on_rank, rank) for rank in range(RANKS)]
results = [rank.join(120) for rank in ranks]

model, batches = model_and_batches()
expected = train(copy.deepcopy(model), batches, lambda tensor: tensor.detach().clone())
for rank, (sharded, history) in enumerate(results):
    probe.check(all(sharded.values()), f"rank {rank} holds a part of each parameter", sharded=sharded)
    for step, (found, wanted) in enumerate(zip(history, expected, strict=True), start=1):
        for what, left, right in zip(("gradient", "weight"), found, wanted, strict=True):
            for name, tensor in right.items():
                probe.close(torch.tensor(left[name]), tensor, f"rank {rank}, step {step}: {what} of {name}", rtol=1e-4)
