"""`with torch.npu.stream(s)` is captured: the graph switches to s before the block's work, and back after it.

Dropped from the graph, the block runs on whatever stream is current; overlap of copies and computation then turns
into a race or into nothing, with right-looking results in small tests.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["dynamo_before", "dynamo_after"] }
# timeout = 60
# releases = ">=2.10"
# ///

import importlib

from harness import probe

order = {"dynamo_before": ["torch._dynamo", "torch_npu"], "dynamo_after": ["torch_npu", "torch._dynamo"]}
for name in order[probe.param("order")]:
    importlib.import_module(name)

import torch

stream = torch.npu.Stream()
outside = torch.npu.current_stream()
graphs, seen = [], []


def capture(module, _):
    graphs.append(module.graph)
    return module.forward


@torch.compiler.allow_in_graph
def observe(x):
    seen.append(torch.npu.current_stream())
    return x + 1


def inside(x):
    with torch.npu.stream(stream):
        y = observe(x)
    return y * 2


result = torch.compile(inside, backend=capture, fullgraph=True)(torch.ones(3))
probe.close(result, torch.full((3,), 4.0), "(x + 1) * 2")
names = [getattr(node.target, "__name__", "") for node in graphs[0].nodes]
work = [name for name in names if name in ("set_stream", "observe", "mul")]
probe.equal(work, ["set_stream", "observe", "set_stream", "mul"], "order of switches and work in the graph")
probe.equal(seen[-1], stream, "stream on which the block's work ran")
probe.equal(torch.npu.current_stream(), outside, "current stream afterwards")
