"""Backend npugraphs runs a step eagerly once, captures it once, and only replays it from then on, with right results.

The first call warms up, the second records, every later one is a single call into the device runtime and no operator.
A backend that stays in its warm-up, because it takes inference for training or waits for marks that never come, gives
right numbers at eager speed; one that replays on the wrong memory is fast and wrong. So both are judged: the numbers
against the CPU, and what the device was asked to do.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { work = ["inference", "training"] }
# needs = ["ops", "graph"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import copy

import torch
import torch_npu
from harness import probe
from torch import nn

work = probe.param("work")
COMPUTES = ("aclnnMuls", "aclnnAdd", "aclnnMm", "aclnnAddmm", "aclnnRelu", "aclnnTanh", "aclnnThresholdBackward")
torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x, shift):
        return self.last(self.first(x).relu() * 2) + shift


if work == "inference":

    def plain(x, shift):
        return (x * 2 + shift).relu(), x @ shift.T

    device, parameters = plain, []
    inputs = ((3, 4), (3, 4))
else:
    plain = Model()
    device = copy.deepcopy(plain).npu()
    parameters = list(zip(device.parameters(), plain.parameters(), strict=True))
    inputs = ((3, 4), (3, 2))


def asked(before):
    """What the device was asked to do since `before`: (captures, replays, operators that compute)."""
    torch.npu.synchronize()
    since = {name: times - before.get(name, 0) for name, times in probe.device_calls().items()}
    operators = sum(times for name, times in since.items() if name.startswith(COMPUTES) and not name.endswith("Size"))
    return since.get("aclmdlRICaptureBegin", 0), since.get("aclmdlRIExecuteAsync", 0), operators


def run(function, arguments):
    result = function(*arguments)
    if work == "training":
        result.square().sum().backward()
    return result


for marked in (False, True):
    torch.compiler.reset()
    compiled = torch.compile(device, backend="npugraphs", fullgraph=True)
    steps = []
    for number in range(1, 6):
        which = f"step {number}, {marked=}"
        arguments = [torch.randn(shape) for shape in inputs]
        on_device = [argument.npu() for argument in arguments]
        torch.npu.synchronize()
        if marked:
            torch.compiler.npugraph_mark_step_begin()
        before = probe.device_calls()
        result = compiled(*on_device)
        steps.append(asked(before))
        expected = plain(*arguments)
        probe.close(result, expected, f"result of {which}", rtol=1e-4, atol=1e-5)
        if work == "training":
            before = probe.device_calls()
            result.square().sum().backward()
            steps[-1] += (asked(before)[1],)
            expected.square().sum().backward()
        for index, (mine, wanted) in enumerate(parameters):
            probe.close(mine.grad, wanted.grad, f"gradient {index} of {which}", rtol=1e-4, atol=1e-5)
            mine.grad = wanted.grad = None
        del result

    probe.note(f"(captures, replays, operators) by step, {marked=}", steps)
    captures, replays, operators = zip(*(step[:3] for step in steps), strict=True)
    probe.equal(replays, (0, 1, 1, 1, 1), f"replays of the forward graph, by step, {marked=}")
    probe.equal([times > 0 for times in operators], [True, True, False, False, False], "steps that call an operator")
    probe.equal(captures[1:], (1, 0, 0, 0), f"captures from the second step on, {marked=}")
    if work == "training":
        probe.equal([step[3] for step in steps], [0, 1, 1, 1, 1], f"replays of the backward graph, {marked=}")
