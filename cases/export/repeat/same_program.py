"""Exporting the same model again gives the same program, whatever was exported or failed in between.

Setup that was applied twice, caches that were not cleared, and state left by a failed export all show in the second
program.
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
from cases import _subject as subject


class Model(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("npu", dtype=torch.float16):
            y = torch.mm(x, x)
        if torch.npu.get_device_properties(0).total_memory > 0:
            y = y + torch.npu.current_device()
        return y * 2


class Refused(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


x = torch.eye(3).npu() / 2
wanted = (torch.eye(3) / 2).half()
first = {strict: torch.export.export(Model(), (x,), strict=strict) for strict in (True, False)}
for turn in ("second", "third"):
    for strict in (True, False):
        with probe.raises(Exception):
            torch.export.export(Refused(), (x,), strict=strict)
        again = torch.export.export(Model(), (x,), strict=strict)
        what = f"strict={strict}, {turn} time"
        probe.equal(again.graph_module.code, first[strict].graph_module.code, f"{what}: the program's code")
        probe.equal(str(again.graph_signature), str(first[strict].graph_signature), f"{what}: its signature")
        probe.close(again.module()(x), wanted, f"{what}: its result")
        probe.close(first[strict].module()(x), wanted, f"{what}: the result of the first program")
        torch.compiler.reset()
probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.modules.absent("torch_npu._inductor")
