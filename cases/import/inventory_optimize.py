"""torch._dynamo.optimize still takes any backend after setup, by position, by keyword or as the default, and runs it.

torch_npu wraps it to start torchair early for backend "npu". Every other backend, and every call form that torch
accepts, must pass through unharmed, once.
"""

# /// script
# [tool.conformance]
# rule = "import/inventory/12"
# level = "must"
# matrix = { form = ["position", "keyword", "callable", "nopython", "disable"] }
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


def add(x):
    return x + 1


match probe.param("form"):
    case "position":
        optimized = torch._dynamo.optimize("eager")(add)
    case "keyword":
        optimized = torch._dynamo.optimize(backend="eager")(add)
    case "callable":
        optimized = torch._dynamo.optimize(backend)(add)
    case "nopython":
        optimized = torch._dynamo.optimize(backend, nopython=True)(add)
    case "disable":
        optimized = torch._dynamo.optimize(backend, disable=True)(add)

for _ in range(2):
    probe.close(optimized(torch.ones(3)), torch.full((3,), 2.0), "x + 1")
expected = 1 if probe.param("form") in ("callable", "nopython") else 0
probe.equal(len(calls), expected, "graphs the backend was given")
with probe.raises(TypeError, match="no_such_option"):
    torch._dynamo.optimize("eager", no_such_option=1)
probe.modules.absent("torch_npu.dynamo.torchair", "torch_npu._inductor")
