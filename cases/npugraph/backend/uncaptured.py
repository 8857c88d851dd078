"""What backend npugraphs cannot capture runs without a graph, with right results, and does not disturb what it can.

A model with a piece on the CPU, an update of its input or a break of the graph must still run; the parts that can be
captured still are.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "graph"]
# timeout = 180
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe


def on_cpu(x):
    return (x.cpu() + 1).to(x.device) * 2


def writes_input(x):
    x.add_(1)
    return x * 2


def breaks(x):
    y = x * 2
    if y.sum().item() > 1e6:
        return y
    return y + 1


def counts(x):
    return x.nonzero().shape[0] + x


def constant(x):
    return x.shape[0] * 2


PROGRAMS = {function.__name__: function for function in (on_cpu, writes_input, breaks, counts, constant)}


def captured(x):
    return (x - 1).relu()


graphed = torch.compile(captured, backend="npugraphs", fullgraph=True)
for name, function in PROGRAMS.items():
    compiled = torch.compile(function, backend="npugraphs")
    for number in range(1, 5):
        x = torch.randn(4, 3)
        mine, other = x.clone().npu(), torch.randn(4, 3)
        result, expected = compiled(mine), function(x)
        if isinstance(expected, int):
            probe.equal(result, expected, f"result {number} of {name}")
        else:
            probe.close(result, expected, f"result {number} of {name}")
        probe.close(mine, x, f"input {number} of {name} afterwards")
        probe.close(graphed(other.npu()), captured(other), f"result {number} of a captured function beside {name}")

replays = probe.device_calls().get("aclmdlRIExecuteAsync", 0)
# Before 2.12 a call is taken for a forward pass of training, and each of a row is recorded anew.
probe.check(replays >= (10 if torch.__version__ >= "2.12" else 1), "the captured function is replayed", replays=replays)
