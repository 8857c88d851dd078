"""Without onnxscript an ONNX export through Dynamo names what is missing, and the process goes on as before.

onnxscript is an extra that many environments lack. The failed attempt must not leave a half-loaded Dynamo or a hook
behind: the next compile and the next export work, with NPU setup done.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { dynamo = ["not_loaded", "loaded"] }
# needs = ["ops"]
# timeout = 180
# releases = ">=2.7.1"
# ///

import importlib
import sys

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

if probe.param("dynamo") == "loaded":
    importlib.import_module("torch._dynamo")
sys.modules["onnxscript"] = None


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + torch.npu.current_device()


x = torch.arange(-3.0, 3.0).npu()
wanted = torch.relu(torch.arange(-3.0, 3.0))
finders = list(sys.meta_path)
for attempt in ("first", "second"):
    with probe.raises(Exception, match="onnxscript"):
        torch.onnx.export(Model(), (x,), "model.onnx", dynamo=True)
    added = [finder for finder in sys.meta_path if finder not in finders]
    probe.equal(added, [], f"finders that the {attempt} attempt has added")

probe.close(torch.compile(Model(), backend="eager", fullgraph=True)(x), wanted, "a compile afterwards")
for strict in (True, False):
    program = torch.export.export(Model(), (x,), strict=strict)
    probe.close(program.module()(x), wanted, f"an export afterwards, strict={strict}")
probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.modules.absent("torch_npu._inductor")
