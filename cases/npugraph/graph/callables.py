"""torch.npu.make_graphed_callables gives drop-in replacements: forward and backward as eager, each by one replay.

Training loops graph a part of a model this way. Parameters that changed since the capture must be seen, and a module
in the other mode (eval) must run its own code.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "graph"]
# timeout = 60
# releases = ">=2.7.1"
# ///

import copy

import torch
import torch_npu
from harness import probe
from torch import nn

torch.manual_seed(0)


def replays():
    torch.npu.synchronize()
    return probe.device_calls().get("aclmdlRIExecuteAsync", 0)


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
plain = copy.deepcopy(model)
original = model.npu()
graphed = torch.npu.make_graphed_callables(original, (torch.randn(3, 4, device="npu"),))
probe.same(graphed, original, "what is returned for a module")
optimizers = [torch.optim.SGD(module.parameters(), lr=0.1) for module in (graphed, plain)]
for step in range(4):
    x = torch.randn(3, 4)
    before = replays()
    result, expected = graphed(x.npu()), plain(x)
    probe.equal(replays() - before, 1, f"replays of the forward pass in step {step}")
    probe.close(result, expected, f"result of step {step}", rtol=1e-4, atol=1e-5)
    result.square().sum().backward()
    expected.square().sum().backward()
    probe.equal(replays() - before, 2, f"replays with the backward pass in step {step}")
    for (name, mine), wanted in zip(graphed.named_parameters(), plain.parameters(), strict=True):
        probe.close(mine.grad, wanted.grad, f"gradient of {name} in step {step}", rtol=1e-4, atol=1e-5)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
graphed.eval()
before, x = replays(), torch.randn(5, 4)
probe.close(graphed(x.npu()), plain(x), "result in the mode that was not captured", rtol=1e-4, atol=1e-5)
probe.equal(replays() - before, 0, "replays in the mode that was not captured")


def scale(x, y):
    return {"scaled": x * y + 1}


def head(x):
    return x.relu()


sample = torch.randn(3, device="npu", requires_grad=True)
pair = torch.npu.make_graphed_callables((scale, head), ((sample, torch.randn(3, device="npu")), (sample,)))
probe.check(isinstance(pair, tuple) and len(pair) == 2, "two functions give two functions", pair=pair)
for step in range(2):
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    on_device = x.detach().npu().requires_grad_()
    result, expected = pair[1](pair[0](on_device, y.npu())["scaled"]), head(scale(x, y)["scaled"])
    probe.close(result, expected, f"result of the pair, {step}")
    result.sum().backward()
    expected.sum().backward()
    probe.close(on_device.grad, x.grad, f"gradient of the pair, {step}")

hooked = nn.Linear(2, 2).npu()
hooked.register_forward_hook(lambda *_: None)
with probe.raises(RuntimeError, "hooks"):
    torch.npu.make_graphed_callables(hooked, (torch.randn(1, 2, device="npu"),))
with probe.raises(RuntimeError, "only Tensors"):
    torch.npu.make_graphed_callables(head, (3,))
