"""The module of an exported program trains on the NPU as the original does on the CPU, buffers included.

Programs are exported to be fine-tuned, too: gradients have to reach the parameters, and running statistics have to
be written back.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import copy

import torch
import torch_npu
from harness import probe
from cases import _subject as subject


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(torch.tanh(self.inner(x)))


torch.manual_seed(0)
original, x = Model(), torch.randn(6, 4)
# On torch before 2.9 export gives a program for inference; this function is the one for training there.
export = getattr(torch.export, "export_for_training", torch.export.export)
for strict in (True, False):
    on_cpu = copy.deepcopy(original)
    on_npu = export(copy.deepcopy(original).npu(), (x.npu(),), strict=strict).module()
    for model, data in ((on_cpu, x), (on_npu, x.npu())):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(data) - data).square().mean().backward()
            optimizer.step()
    trained = on_npu.state_dict()
    probe.equal(set(trained), set(on_cpu.state_dict()), f"strict={strict}: names of the state")
    for name, value in on_cpu.state_dict().items():
        probe.equal(trained[name].device.type, "npu", f"strict={strict}: device of {name}")
        probe.close(trained[name], value, f"strict={strict}: {name} after three steps", rtol=1e-4, atol=1e-5)
probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
probe.modules.absent("torch_npu._inductor")
