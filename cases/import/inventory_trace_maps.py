"""Each of the three NPU trace-rule maps is in Dynamo's table exactly once, however often setup is triggered.

A missing map makes torch.npu functions break the graph; a doubled one has been seen to make later look-ups disagree,
and shows that setup steps are repeated. Compares by identity with the maps of torch_npu.dynamo.trace_rule.
"""

# /// script
# [tool.conformance]
# rule = "import/inventory/8"
# level = "must"
# matrix = { order = ["dynamo_before", "dynamo_after"], again = ["import", "setup", "backend", "reset"] }
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

for _ in range(2):
    match probe.param("again"):
        case "import":
            importlib.import_module("torch_npu")
            importlib.import_module("torch._dynamo.backends.registry")
        case "setup":
            npu_dynamo._lazy_dynamo_setup()
        case "backend":
            torch.compile(lambda x: x, backend="inductor")
            torch.compiler.list_backends()
        case "reset":
            torch.compiler.reset()

maps = {
    "in-graph functions": npu_rules.torch_non_c_binding_in_graph_functions_npu,
    "in-graph C bindings": npu_rules.torch_c_binding_in_graph_functions_npu,
    "skipped functions": npu_rules.skip_functions_npu,
}
table = torch._dynamo.trace_rules.torch_name_rule_map
for name, rules in maps.items():
    probe.equal(sum(entry is rules for entry in table), 1, f"times that the map of {name} is in the table")
probe.equal(
    torch._dynamo.trace_rules.lookup(torch.npu.is_available).__name__,
    "TorchInGraphFunctionVariable",
    "rule for torch.npu.is_available",
)
