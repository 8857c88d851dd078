"""After each forward pass without a backward pass, fully_shard's parameters are sharded again, in torch_npu's form too.

An evaluation loop runs many of them in a row. Parameters that stay gathered cost the full model's memory on every
device, which is the one thing sharding is for, and code that expects a DTensor (state dicts, optimizers) meets a
plain parameter.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { form = ["torch", "torch_npu"] }
# timeout = 60
# releases = ">=2.10"
# ///

import torch
import torch.distributed as dist
import torch_npu
from harness import probe
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

if probe.param("form") == "torch":
    from torch.distributed.fsdp import fully_shard
else:
    from torch_npu.distributed.fsdp import fully_shard

dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
mesh = init_device_mesh("cpu", (1,))
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
x = torch.ones(3, 4)
expected = model(x).detach()
for layer in (model[0], model[2]):
    fully_shard(layer, mesh=mesh, reshard_after_forward=True)
fully_shard(model, mesh=mesh, reshard_after_forward=True)

for turn in ("first", "second", "third"):
    with torch.no_grad():
        probe.close(model(x), expected, f"result of the {turn} evaluation")
    gathered = [name for name, parameter in model.named_parameters() if not isinstance(parameter, DTensor)]
    probe.equal(gathered, [], f"parameters left gathered after the {turn} evaluation")
dist.destroy_process_group()
