"""A graph of half precision numbers compiled by Inductor is as near to the exact result as eager."""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { dtype = ["bfloat16", "float16"] }
# needs = ["ops", "triton", "kernels"]
# timeout = 180
# releases = ">=2.13"
# ///

import torch
import torch_npu
from harness import probe


def function(x, y):
    return torch.softmax((x * y).tanh() + y, -1) * x


dtype = getattr(torch, probe.param("dtype"))
torch.manual_seed(5)
x, y = torch.randn(9, 33).to(dtype), torch.randn(9, 33).to(dtype)
exact = function(x.double(), y.double())
result = torch.compile(function, backend="inductor", fullgraph=True)(x.npu(), y.npu())
probe.equal(result.dtype, dtype, "dtype of the result")
error, eager = (result.cpu().double() - exact).abs().max().item(), (function(x, y).double() - exact).abs().max().item()
probe.check(
    error <= 2 * eager, "no further from the exact result than twice eager's distance", error=error, eager=eager
)
