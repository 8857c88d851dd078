"""An operator of torch_npu that ONNX lacks is named when the export through Dynamo fails, and the next export works.

Models for the NPU call its fused operators. Whoever exports one has to learn which call to replace.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = {}
# needs = ["ops", "onnx", "onnxscript", "onnxruntime"]
# timeout = 240
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

import onnxruntime
import torch.onnx


class Fused(torch.nn.Module):
    def forward(self, x):
        return torch_npu.npu_swiglu(x, dim=-1)


class Replaced(torch.nn.Module):
    def forward(self, x):
        left, right = x.chunk(2, dim=-1)
        return torch.nn.functional.silu(left) * right


x = torch.arange(12.0).reshape(3, 4) / 8
wanted = torch_npu.npu_swiglu(x.npu(), dim=-1).cpu()
with probe.raises(Exception, match="npu_swiglu"):
    torch.onnx.export(Fused().eval(), (x.npu(),), "fused.onnx", dynamo=True)
torch.onnx.export(Replaced().eval(), (x.npu(),), "replaced.onnx", dynamo=True)
session = onnxruntime.InferenceSession("replaced.onnx", providers=["CPUExecutionProvider"])
(result,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
probe.close(torch.from_numpy(result), wanted, "onnxruntime's result", rtol=1e-4, atol=1e-5)
