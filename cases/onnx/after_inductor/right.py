"""An ONNX export through Dynamo is right after NPU Inductor has been set up, too.

Inductor's NPU setup replaces decompositions, lowerings and graph functions of torch for the process. A service that
compiles some models and exports others must not find NPU forms in its ONNX files.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops", "onnx", "onnxscript", "onnxruntime"]
# timeout = 240
# releases = ">=2.7.1"
# ///

import copy

import torch
import torch_npu
from harness import probe

import torch_npu._inductor
import onnxruntime
import torch.onnx


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = torch.nn.functional.gelu(self.inner(x))
        return torch.nn.functional.layer_norm(torch.cat([x, x], dim=-1), (8,)).sum(dim=0)


probe.modules.present("torch_npu._inductor")
torch.manual_seed(0)
on_cpu = Model().eval()
x = torch.arange(12.0).reshape(3, 4) / 8
with torch.no_grad():
    wanted = on_cpu(x)
    for device in ("cpu", "npu"):
        file = f"{device}.onnx"
        torch.onnx.export(copy.deepcopy(on_cpu).to(device), (x.to(device),), file, dynamo=True)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        (result,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        probe.close(torch.from_numpy(result), wanted, f"{device}: onnxruntime's result", rtol=1e-4, atol=1e-5)
