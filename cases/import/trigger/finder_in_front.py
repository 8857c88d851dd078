"""A finder put in front of the trigger cannot keep NPU setup away from a capture.

A tool that inserts its finder at the head of sys.meta_path after `import torch_npu` and serves torch._dynamo itself
hides the import from the trigger. Then a second line of defence has to run the setup before anything is captured,
whichever way the user takes, also when the finder serves all of torch. Otherwise NPU streams, autocast and device
constants are traced by unpatched rules, silently.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { ways = ["npu_code", "other_backends", "export"], serves = ["dynamo", "torch"] }
# timeout = 180
# releases = ">=2.7.1"
# ///

import sys
from importlib.machinery import PathFinder

from harness import probe
from cases import _subject as subject

import torch
import torch_npu


class FrontFinder:
    def find_spec(self, name, path=None, target=None):
        mine = name == "torch._dynamo" if probe.param("serves") == "dynamo" else name.startswith("torch.")
        return PathFinder.find_spec(name, path, target) if mine else None


sys.meta_path.insert(0, FrontFinder())
import torch._dynamo


class AddOne(torch.nn.Module):
    def forward(self, x):
        return x + 1


WAYS = {
    "npu_code": ["inductor_wrapper", "backend_npu"],
    "other_backends": ["eager", "aot_eager", "callable"],
    "export": ["export", "export_strict"],
}


def setup_has_run_after(way):
    had_run_at_capture = []

    def callable_backend(graph, _inputs):
        had_run_at_capture.append(subject.dynamo_setup.has_run)
        return graph.forward

    x = torch.ones(3)
    match way:
        case "inductor_wrapper":
            torch.compile(AddOne(), backend="inductor")
        case "backend_npu":
            graph = torch.fx.symbolic_trace(AddOne())
            backend = torch._dynamo.lookup_backend("npu")
            subject.fake_torchair()
            backend(graph, [x])
        case "export":
            torch.export.export(AddOne(), (x,))
        case "export_strict":
            torch.export.export(AddOne(), (x,), strict=True)
        case "callable":
            torch.compile(AddOne(), backend=callable_backend)(x)
            return had_run_at_capture == [True]
        case name:
            torch.compile(AddOne(), backend=name)(x)
    return subject.dynamo_setup.has_run


def judge(way):
    probe.equal(setup_has_run_after(way), True, "NPU setup has run, for a callable when it gets its graph")


# Setup cannot be undone, so each way gets a copy of the process in which Dynamo has been imported only.
probe.each(WAYS[probe.param("ways")], judge, forked=True)
