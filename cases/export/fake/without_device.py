"""A model of fake NPU tensors is exported where there is no NPU, without a touch of the device.

Exporting on a build machine is what fake tensors are for. A guard, a probe or a property query that reaches for the
device ends there in an error, or in the end of the process.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.7.1"
# ///

import os

from harness import probe
from cases import _subject as subject

os.environ["ASCEND_RT_VISIBLE_DEVICES"] = ""

import torch
import torch_npu

from torch._subclasses.fake_tensor import FakeTensorMode

probe.equal(torch.npu.is_available(), False, "torch.npu.is_available()")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        # No parameter: for one that is trained autograd asks for the device's stream, in plain torch, too.
        self.register_buffer("weight", torch.empty(4, 4, device="npu:0"))

    def forward(self, x):
        scores = torch.softmax(x @ self.weight, dim=-1)
        return scores + torch.ones(4, device=x.device)


with FakeTensorMode():
    model = Model()
    x = torch.empty(3, 4, device="npu:0")


def export(strict):
    program = torch.export.export(model, (x,), strict=strict)
    nodes = {node.name: node.meta["val"] for node in program.graph.nodes if "val" in node.meta}
    devices = {name: str(value.device) for name, value in nodes.items()}
    probe.check(len(nodes) >= 5, f"strict={strict}: the graph holds the model", nodes=list(nodes))
    probe.equal(set(devices.values()), {"npu:0"}, f"strict={strict}: devices in the graph")
    result = list(nodes.values())[-1]
    probe.equal((tuple(result.shape), result.dtype), ((3, 4), torch.float32), f"strict={strict}: the result's form")
    probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
    probe.modules.absent("torch_npu._inductor")
    probe.device_untouched(operators=True)


for strict in (False, True):
    probe.forked(export, strict)  # a fault here can end the process
