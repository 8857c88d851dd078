"""torch_npu's own operators are exported as such, with the shapes and types that they have on the device.

Transformer models for the NPU call these operators directly. Export needs to know the form of each result without
running it; a wrong or missing rule shows only there.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe


def rotary(x):
    x = x.reshape(1, 2, 3, 4)
    return torch_npu.npu_rotary_mul(x, torch.cos(x), torch.sin(x))


calls = {
    "npu_rms_norm": lambda x: torch_npu.npu_rms_norm(x, x[0], epsilon=1e-6),
    "npu_swiglu": lambda x: torch_npu.npu_swiglu(x, dim=-1),
    "npu_fast_gelu": torch_npu.npu_fast_gelu,
    "npu_rotary_mul": rotary,
    "npu_dtype_cast": lambda x: torch_npu.npu_dtype_cast(x, torch.float16),
}


def module(function):
    class Model(torch.nn.Module):
        def forward(self, x):
            return function(x)

    return Model()


def parts(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def form(value):
    return [(tuple(each.shape), each.dtype) for each in parts(value)]


torch.manual_seed(0)
x = torch.randn(6, 4).npu()
for name, function in calls.items():
    for strict in (True, False):
        model, what = module(function), f"{name}, strict={strict}"
        eager = model(x)
        program = torch.export.export(model, (x,), strict=strict)
        nodes = [node for node in program.graph.nodes if str(node.target).startswith(f"npu.{name}")]
        probe.equal(len(nodes), 1, f"{what}: calls of the operator in the graph")
        # An operator of several results also saves what its backward pass reads.
        probe.equal(form(nodes[0].meta["val"]), form(eager), f"{what}: shapes and types in the graph")
        result = program.module()(x)
        probe.close(parts(result), parts(eager), f"{what}: the result")
probe.modules.absent("torch_npu._inductor")
