"""Exporting a model whose weights and inputs are on different devices says so plainly, and the next export works.

Forgetting `.npu()` on one side is the commonest mistake. The message has to name both devices, as torch's own does,
and a mode, guard or stream left behind by the failure must not spoil the corrected second try.
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

torch.manual_seed(0)
models = {"cpu": torch.nn.Linear(4, 4)}
models["npu"] = copy.deepcopy(models["cpu"]).npu()
inputs = {"cpu": torch.arange(12.0).reshape(3, 4)}
inputs["npu"] = inputs["cpu"].npu()
wanted = models["cpu"](inputs["cpu"]).detach()
before = (torch.npu.current_device(), torch.npu.current_stream())

for strict in (True, False):
    for weights, data in (("cpu", "npu"), ("npu", "cpu")):
        what = f"strict={strict}, weights on {weights}"
        with probe.raises(RuntimeError, match=r"(?s)npu:0.*cpu|cpu.*npu:0"):
            torch.export.export(models[weights], (inputs[data],), strict=strict)
        probe.equal((torch.npu.current_device(), torch.npu.current_stream()), before, f"{what}: device and stream")
        probe.close(models["npu"](inputs["npu"]).detach(), wanted, f"{what}: eager mode after the failure")
        for device in ("npu", "cpu"):
            program = torch.export.export(models[device], (inputs[device],), strict=strict)
            result = program.module()(inputs[device])
            probe.close(result.detach(), wanted, f"{what}: the next export, of the model on {device}")
probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.modules.absent("torch_npu._inductor")
