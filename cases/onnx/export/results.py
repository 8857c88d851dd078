"""An ONNX model exported through Dynamo from the CPU or the NPU gives torch's results in onnxruntime.

The deployment runs elsewhere, so the model must hold nothing of the NPU, however the exporter was reached: as an
attribute, by a name bound before torch_npu was imported, or from an exported program. Dynamo setup alone is started.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { function = ["attribute", "bound_before"] }
# needs = ["ops", "onnx", "onnxscript", "onnxruntime"]
# timeout = 240
# releases = ">=2.7.1"
# ///

import copy

from harness import probe
from cases import _subject as subject

import torch

if probe.param("function") == "bound_before":
    from torch.onnx import export

    dynamo_export = getattr(torch.onnx, "dynamo_export", None)
    import torch_npu
else:
    import torch_npu
    import torch.onnx

    export, dynamo_export = torch.onnx.export, getattr(torch.onnx, "dynamo_export", None)

import onnxruntime


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.softmax(torch.relu(self.inner(x)), dim=-1) + torch.ones(4, device=x.device)


class Half(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("npu", dtype=torch.float16):
            return torch.mm(x, x.t()) + torch.npu.current_device()


def run(file, x):
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    return torch.from_numpy(result)


torch.manual_seed(0)
x = torch.arange(12.0).reshape(3, 4) / 8
on_cpu = Model().eval()
on_npu = copy.deepcopy(on_cpu).npu()
program = torch.export.export(on_npu, (x.npu(),)) if probe.param("function") == "attribute" else None
sources = {"cpu": (on_cpu, x), "npu": (on_npu, x.npu()), "half": (Half().eval(), x.npu())}
with torch.no_grad():
    for name, (model, data) in sources.items():
        export(model, (data,), f"{name}.onnx", dynamo=True)
        wanted = model(data)
        tolerance = 1e-3 if name == "half" else 1e-5
        probe.close(run(f"{name}.onnx", x), wanted.cpu(), f"{name}: onnxruntime's result", rtol=tolerance, atol=1e-6)
    if program is not None:
        export(program, (), "program.onnx", dynamo=True)
        probe.close(
            run("program.onnx", x), on_cpu(x), "an exported program: onnxruntime's result", rtol=1e-5, atol=1e-6
        )
    if dynamo_export is not None:  # before torch 2.9
        dynamo_export(on_npu, x.npu()).save("old.onnx")
        probe.close(run("old.onnx", x), on_cpu(x), "dynamo_export: onnxruntime's result", rtol=1e-5, atol=1e-6)
probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.modules.absent("torch_npu._inductor")
