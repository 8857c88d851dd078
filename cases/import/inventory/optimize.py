"""torch._dynamo.optimize still takes any backend after setup, by position, by keyword or as the default, and runs it.

torch_npu wraps it to start torchair early for backend "npu". Every other backend, and every call form that torch
accepts, must pass through unharmed, once.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch._dynamo
import torch_npu
from harness import probe

calls = []


def backend(module, _):
    calls.append(module)
    return module.forward


forms = {  # the way, and how many graphs `backend` is given by it
    "position": (lambda: torch._dynamo.optimize("eager"), 0),
    "keyword": (lambda: torch._dynamo.optimize(backend="eager"), 0),
    "callable": (lambda: torch._dynamo.optimize(backend), 1),
    "nopython": (lambda: torch._dynamo.optimize(backend, nopython=True), 1),
    "disable": (lambda: torch._dynamo.optimize(backend, disable=True), 0),
}
for form, (optimizer, graphs) in forms.items():
    torch._dynamo.reset()
    calls.clear()
    optimized = optimizer()(lambda x: x + 1)
    for _ in range(2):
        probe.close(optimized(torch.ones(3)), torch.full((3,), 2.0), f"x + 1, {form}")
    probe.equal(len(calls), graphs, f"graphs the backend was given, {form}")
with probe.raises(TypeError, match="no_such_option"):
    torch._dynamo.optimize("eager", no_such_option=1)
probe.modules.absent("torch_npu.dynamo.torchair", "torch_npu._inductor")
