"""Before 2.12, Dynamo traces Tensor.record_stream as torch.npu.fake_record_stream, which a pass is to replace.

torch of these releases cannot trace the call, and models that use side streams make it. The stand-in does nothing for
fake tensors and refuses all others: forgotten in a graph that runs, it must not pass for the real thing.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["dynamo_before", "dynamo_after"] }
# needs = ["ops"]
# timeout = 90
# releases = ">=2.7.1, <2.12"
# ///

import importlib

from harness import probe

order = {"dynamo_before": ["torch._dynamo", "torch_npu"], "dynamo_after": ["torch_npu", "torch._dynamo"]}
for name in order[probe.param("order")]:
    importlib.import_module(name)

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

side = torch.npu.Stream()
lent = []


def replace(module, _):
    nodes = [node for node in module.graph.nodes if node.target is torch.npu.fake_record_stream]
    probe.equal(len(nodes), 1, "stand-ins in the graph")
    nodes[0].target = lambda tensor, stream: lent.append((tensor.shape, stream.stream_id))
    module.recompile()
    return module.forward


def lend(x):
    x.record_stream(side)
    return x + 1


x = torch.ones(3, device="npu")
result = torch.compile(lend, backend=replace, fullgraph=True)(x)
probe.close(result, torch.full((3,), 2.0), "x + 1")
probe.equal(lent, [(x.shape, side.stream_id)], "tensor and stream with which the replacement was called")

with FakeTensorMode():
    probe.same(torch.npu.fake_record_stream(torch.ones(3), side), None, "the stand-in for a fake tensor")
with probe.raises(RuntimeError, match="record_stream"):
    torch.npu.fake_record_stream(x, side)
