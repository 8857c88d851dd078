"""A pool of compile workers compiles kernels for an NPU as the process itself does.

The workers are forked from a helper that looks at the devices' properties. A worker that then talks to the device
fails, and with it the compile of every kernel with more than one configuration.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { workers = [1, 2] }
# needs = ["ops", "triton", "kernels"]
# timeout = 240
# releases = ">=2.13"
# ///

import os

from harness import probe

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = str(probe.param("workers"))
# As by default: torch_npu comes with torch, in the helper too, and a kernel has several configurations.
del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
if probe.param("workers") > 1:
    del os.environ["FAST_RUN_WITH_MAX_TILING_NUM"]

import torch
import torch_npu
from torch._inductor.async_compile import AsyncCompile

import torch._inductor.config


def function(x):
    return torch.softmax(x * 2, -1), x.sum(0)  # more than one kernel


AsyncCompile.wait_pool_ready()
probe.equal(AsyncCompile.use_process_pool(), probe.param("workers") > 1, "there is a pool that is ready")
x = torch.linspace(-2, 2, 6400).reshape(64, 100)
found = torch.compile(function, backend="inductor", fullgraph=True)(x.npu())
for name, result, expected in zip(("softmax", "sum"), found, function(x), strict=True):
    probe.close(result, expected, name, rtol=1e-5, atol=1e-5)
