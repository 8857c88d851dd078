"""Inductor compiles for an NPU where a CI system has set CI=true what it compiles without.

With the variable set torch refuses to leave an operator to the device that it could take apart, which tells its own
developers of a missing entry. An NPU takes some such operators whole on purpose, GELU and losses among them. Most CI
systems set the variable: there the models of a test suite must compile as they do for a user.
"""

# /// script
# [tool.conformance]
# level = "should"
# needs = ["ops", "triton", "kernels"]
# timeout = 180
# releases = ">=2.13"
# ///

import os

from harness import probe

os.environ["CI"] = "true"

import torch
import torch_npu
from torch.nn import functional as F


def function(x, target):
    return F.cross_entropy(F.gelu(x), target)


x, target = torch.linspace(-3, 3, 60).reshape(12, 5), torch.arange(12) % 5
try:
    result = torch.compile(function, backend="inductor", fullgraph=True)(x.npu(), target.npu())
except torch._dynamo.exc.BackendCompilerFailed as error:
    probe.check(False, "the function is compiled", error=error)
probe.close(result, function(x, target), "result", rtol=1e-5, atol=1e-6)
