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
import os

from harness import probe

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
order = {"dynamo_before": ["torch._dynamo", "torch_npu"], "dynamo_after": ["torch_npu", "torch._dynamo"]}
for name in order[probe.param("order")]:
    importlib.import_module(name)

import torch
import torch_npu.dynamo.trace_rule as npu_rules
import torch_npu.utils._dynamo as npu_dynamo

maps = {
    "in-graph functions": npu_rules.torch_non_c_binding_in_graph_functions_npu,
    "in-graph C bindings": npu_rules.torch_c_binding_in_graph_functions_npu,
    "skipped functions": npu_rules.skip_functions_npu,
}


def judge(after):
    table = torch._dynamo.trace_rules.torch_name_rule_map
    counts = {name: sum(entry is rules for entry in table) for name, rules in maps.items()}
    probe.equal(counts, dict.fromkeys(maps, 1), f"times that each map is in the table after {after}")
    rule = torch._dynamo.trace_rules.lookup(torch.npu.is_available).__name__
    probe.equal(rule, "TorchInGraphFunctionVariable", f"rule for torch.npu.is_available after {after}")


judge("the imports")
for _ in range(2):
    importlib.import_module("torch_npu")
    importlib.import_module("torch._dynamo.backends.registry")
    judge("another import")
    npu_dynamo._lazy_dynamo_setup()
    judge("another setup")
    torch.compile(lambda x: x, backend="inductor")
    torch.compiler.list_backends()
    judge("the use of a backend")
    torch.compiler.reset()
    judge("a reset")
