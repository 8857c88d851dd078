"""run_and_save_rng_state and run_with_rng_state serve tensors on npu and on the CPU, real ones and fake ones.

Activation checkpointing under a compiler replays dropout with them: the second run has to draw the numbers of the
first, from the generator of the device that the operator runs on, and tracing has to get through without a device.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops"]
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from torch._prims import rng_prims
from torch._subclasses.fake_tensor import FakeTensorMode

aten = torch.ops.aten
save, replay = rng_prims.run_and_save_rng_state, rng_prims.run_with_rng_state


def fake(device):
    with FakeTensorMode():
        tensor = torch.empty(4, device=device)
        found = [save(aten.rand_like.default, tensor)[1]]
        found.append(save(aten.rand.default, [4], device=torch.device(device))[1])
        if device == "npu":  # on the CPU plain torch refuses a state that is no fake tensor
            found.append(replay(torch.get_device_module("npu").get_rng_state(), aten.rand_like.default, tensor))
        return [(type(each).__name__, each.device.type, tuple(each.shape)) for each in found]


def real(device):
    module = torch.get_device_module(device) if device != "cpu" else torch
    tensor = torch.zeros(1000).to(device)
    calls = {
        "an operator on a tensor": (aten.rand_like.default, [tensor], {}),
        "an operator with device=": (aten.rand.default, [[1000]], {"device": torch.device(device)}),
    }
    for what, (operator, args, kwargs) in calls.items():
        state, first = save(operator, *args, **kwargs)
        probe.equal(first.device.type, device, f"{what}: device of the result")
        probe.check(first.cpu().unique().numel() > 100, f"{what}: random numbers came out")
        before = module.get_rng_state()
        probe.close(
            replay(state, operator, *args, **kwargs), first.cpu(), f"{what} on {device}, replayed", rtol=0, atol=0
        )
        probe.check(
            torch.equal(module.get_rng_state(), before), f"{what} on {device}: the replay leaves the generator alone"
        )
        again = operator(*args, **kwargs)
        probe.check(not torch.equal(again.cpu(), first.cpu()), f"{what} on {device}: the generator moves on")


for device in ("npu", "cpu"):
    expected = [("FakeTensor", device, (4,))] * (3 if device == "npu" else 2)
    probe.equal(fake(device), expected, f"fake tensors on {device}")
for device in ("npu", "cpu"):
    real(device)
