"""Every export function gives the model's results on the NPU, in every import order, and starts Dynamo setup alone.

`from torch.export import export` at the top of a file may run before the backend is there, and a library may have
loaded Dynamo before or after it. Export needs the NPU's rules for Dynamo and never its code generator, whose loading
costs seconds and fails on machines without a kernel toolchain.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["bound_before", "npu_first", "dynamo_before", "dynamo_after"] }
# needs = ["ops"]
# timeout = 180
# releases = ">=2.7.1"
# ///

import copy
import importlib

from harness import probe
from cases import _subject as subject

order = probe.param("order")


def functions():
    import torch.export as namespace

    names = ("export", "draft_export", "export_for_training", "export_for_inference")
    return {name: getattr(namespace, name) for name in names if hasattr(namespace, name)}


if order in {"bound_before", "dynamo_before"}:
    import torch

    if order == "dynamo_before":
        importlib.import_module("torch._dynamo")
    bound = functions()
    import torch_npu
else:
    import torch_npu
    import torch

    if order == "dynamo_after":
        importlib.import_module("torch._dynamo")
    bound = functions()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.inner(x)) + torch.ones(4, device=x.device)


def use(name, options):
    torch.manual_seed(0)
    on_cpu = Model().eval()
    on_npu = copy.deepcopy(on_cpu).npu()
    x = torch.arange(12.0).reshape(3, 4)
    with torch.no_grad():
        program = bound[name](on_npu, (x.npu(),), **options)
        result = program.module()(x.npu())
        probe.equal(result.device.type, "npu", "device of the result")
        probe.close(result, on_npu(x.npu()), "the result, compared with the model on the NPU")
        probe.close(result, on_cpu(x), "the result, compared with the model on the CPU")
    probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
    probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
    probe.modules.absent("torch_npu._inductor")


for name in bound:
    # Setup happens once in a process, so each way in gets a copy of this one.
    for options in ({"strict": False}, {"strict": True}) if name == "export" else ({},):
        probe.forked(use, name, options)
