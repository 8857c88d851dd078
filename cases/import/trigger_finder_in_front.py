"""A finder put in front of the trigger cannot keep NPU setup away from a capture.

A tool that inserts its finder at the head of sys.meta_path after `import torch_npu` and serves torch._dynamo itself
hides the import from the trigger. Then a second line of defence has to run the setup before anything is captured,
whichever way the user takes. Otherwise NPU streams, autocast and device constants are traced by unpatched rules,
silently.
"""

# /// script
# [tool.conformance]
# rule = "import/trigger/9"
# level = "must"
# matrix = { way = ["inductor_wrapper", "eager", "aot_eager", "callable", "export", "export_strict", "backend_npu"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys
from importlib.machinery import PathFinder
from types import SimpleNamespace

from harness import probe

import torch
import torch_npu
from torch_npu.utils import _dynamo as npu_dynamo


class FrontFinder:
    def find_spec(self, name, path=None, target=None):
        return PathFinder.find_spec(name, path, target) if name == "torch._dynamo" else None


sys.meta_path.insert(0, FrontFinder())
import torch._dynamo


class AddOne(torch.nn.Module):
    def forward(self, x):
        return x + 1


had_run_at_capture = []


def callable_backend(graph, _inputs):
    had_run_at_capture.append(npu_dynamo._lazy_dynamo_setup.has_run)
    return graph.forward


x = torch.ones(3)
match probe.param("way"):
    case "inductor_wrapper":
        torch.compile(AddOne(), backend="inductor")
    case "backend_npu":
        graph = torch.fx.symbolic_trace(AddOne())
        backend = torch._dynamo.lookup_backend("npu")
        sys.modules["torchair"] = SimpleNamespace(get_npu_backend=lambda **_: lambda graph, *_: graph)
        backend(graph, [x])
    case "export":
        torch.export.export(AddOne(), (x,))
    case "export_strict":
        torch.export.export(AddOne(), (x,), strict=True)
    case "callable":
        torch.compile(AddOne(), backend=callable_backend)(x)
        probe.equal(had_run_at_capture, [True], "NPU setup has run when the backend gets its graph")
    case name:
        torch.compile(AddOne(), backend=name)(x)
probe.check(npu_dynamo._lazy_dynamo_setup.has_run, f"NPU setup has run after {probe.param('way')}")
