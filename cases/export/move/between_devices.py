"""An exported program moved between CPU and NPU gives the same results there.

Exporting where there is no NPU and moving the program later is the documented way to build for one. Factory calls,
weights and the device inside autocast regions have to move along.
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

from torch.export.passes import move_to_device_pass


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.register_buffer("offset", torch.arange(4.0))

    def forward(self, x):
        return torch.relu(self.inner(x)) + torch.ones(4, device=x.device) + self.offset


torch.manual_seed(0)
models = {"cpu": Model().eval()}
models["npu:0"] = copy.deepcopy(models["cpu"]).npu()
x = torch.arange(12.0).reshape(3, 4)
with torch.no_grad():
    wanted = models["cpu"](x)
    for here, there in (("cpu", "npu:0"), ("npu:0", "cpu")):
        for strict in (True, False):
            program = torch.export.export(models[here], (x.to(here),), strict=strict)
            moved = move_to_device_pass(program, there)
            result = moved.module()(x.to(there))
            probe.equal(str(result.device), there, f"strict={strict}, moved to {there}: device of the result")
            probe.close(result, wanted, f"strict={strict}, moved to {there}: the result")
probe.modules.absent("torch_npu._inductor")
