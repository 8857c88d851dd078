"""Each of the three NPU trace-rule maps is in Dynamo's table exactly once, however often setup is triggered.

A missing map makes torch.npu functions break the graph; a doubled one has been seen to make later look-ups disagree,
and shows that setup steps are repeated. Compares by identity with the maps of torch_npu.dynamo.trace_rule.
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
from cases import _subject as subject

order = {"dynamo_before": ["torch._dynamo", "torch_npu"], "dynamo_after": ["torch_npu", "torch._dynamo"]}
for name in order[probe.param("order")]:
    importlib.import_module(name)

import torch


def judge(after):
    counts = subject.times_of_trace_maps()
    probe.equal(counts, [1, 1, 1], f"times that each map is in the table after {after}")
    rule = torch._dynamo.trace_rules.lookup(torch.npu.is_available).__name__
    probe.equal(rule, "TorchInGraphFunctionVariable", f"rule for torch.npu.is_available after {after}")


judge("the imports")
for _ in range(2):
    importlib.import_module("torch_npu")
    importlib.import_module("torch._dynamo.backends.registry")
    judge("another import")
    subject.dynamo_setup()
    judge("another setup")
    torch.compile(lambda x: x, backend="inductor")
    torch.compiler.list_backends()
    judge("the use of a backend")
    torch.compiler.reset()
    judge("a reset")
