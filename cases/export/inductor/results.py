"""A program exported on an NPU and compiled by Inductor gives eager's results, with dynamic sizes, too."""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { sizes = ["fixed", "dynamic"] }
# needs = ["ops", "triton", "kernels"]
# timeout = 180
# releases = ">=2.13"
# ///

import torch
import torch_npu
from harness import probe


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1) * x.sum(0) + x.shape[0]


dynamic = probe.param("sizes") == "dynamic"
x = torch.linspace(-2, 2, 40).reshape(8, 5)
shapes = {"x": {0: torch.export.Dim("rows", min=2)}} if dynamic else None
exported = torch.export.export(Model(), (x.npu(),), dynamic_shapes=shapes)
compiled = torch.compile(exported.module(), backend="inductor", fullgraph=True)
for rows in (8, 3) if dynamic else (8,):
    probe.close(compiled(x[:rows].npu()), Model()(x[:rows]), f"result for {rows} rows", rtol=1e-5, atol=1e-5)
probe.check(probe.device_calls().get("rtKernelLaunch", 0) > 0, "kernels of Triton were launched")
