"""Gradients of a layer norm of half precision numbers that Inductor compiled are as near to the exact ones as eager's.

What forward keeps for backward are the mean and the deviation of each row, in float32 whatever the type of the input.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "triton", "kernels"]
# timeout = 240
# releases = ">=2.13"
# ///

import torch
import torch_npu
from harness import probe
from torch.nn import functional as F


NAMES = ("result", "gradient of x", "gradient of the weight", "gradient of the bias")


def function(x, weight, bias):
    return F.layer_norm(x, (33,), weight, bias)


def gradients(function, *inputs):
    inputs = [each.detach().requires_grad_() for each in inputs]
    result = function(*inputs)
    result.backward(slopes.to(result))
    values = [result, *(each.grad for each in inputs)]
    return dict(zip(NAMES, (value.detach().cpu().double() for value in values), strict=True))


torch.manual_seed(5)
slopes = torch.randn(9, 33)
compiled = torch.compile(function, backend="inductor", fullgraph=True)
for dtype in (torch.bfloat16, torch.float16):
    inputs = [(torch.randn(9, 33) * 3 + 2).to(dtype), torch.randn(33).to(dtype), torch.randn(33).to(dtype)]
    exact = gradients(function, *(each.double() for each in inputs))
    eager = gradients(function, *inputs)
    found = gradients(compiled, *(each.npu() for each in inputs))
    for name in NAMES:
        error, usual = ((each[name] - exact[name]).abs().max().item() for each in (found, eager))
        probe.check(
            error <= 2 * usual,
            f"{name} of {dtype} is no further from the exact one than twice eager's distance",
            error=error,
            eager=usual,
        )
