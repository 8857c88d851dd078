"""Dynamo treats torch.npu.Event and torch.npu.Stream as classes that may appear in a graph, like torch's own.

Otherwise every function that takes or makes a stream breaks the graph there. Asks
UserDefinedClassVariable._in_graph_classes, the one place where Dynamo keeps the set.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["dynamo_before", "dynamo_after"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib

from harness import probe

order = {"dynamo_before": ["torch._dynamo", "torch_npu"], "dynamo_after": ["torch_npu", "torch._dynamo"]}
for name in order[probe.param("order")]:
    importlib.import_module(name)

import torch
from torch._dynamo.variables.user_defined import UserDefinedClassVariable

classes = UserDefinedClassVariable._in_graph_classes()
for expected in (torch.npu.Event, torch.npu.Stream, torch.Tensor):
    probe.check(expected in classes, f"{expected} may appear in a graph", classes=classes)


def make(x):
    event, stream = torch.npu.Event(), torch.npu.Stream()
    return x + 1 if event is not stream else x


result = torch.compile(make, backend="eager", fullgraph=True)(torch.ones(3))
probe.close(result, torch.full((3,), 2.0), "a function that makes an event and a stream, in one graph")
