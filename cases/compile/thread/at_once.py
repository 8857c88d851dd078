"""Threads that compile different functions for an NPU by Inductor at the same time all get eager's results.

NPU Inductor keeps the code generator of a compile in the environment of the process, and is loaded by the first of
them: both must be safe.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "triton", "kernels"]
# timeout = 240
# releases = ">=2.13"
# ///

import os
import sys

import torch
import torch_npu
from harness import probe

FUNCTIONS = [lambda x: torch.softmax(x, -1), lambda x: (x * x).sum(-1), lambda x: x.tanh() + 1]
x = torch.linspace(-2, 2, 40).reshape(8, 5)
start = probe.gate("all threads have made their wrappers", parties=len(FUNCTIONS))
given = x.npu()
sys.setswitchinterval(1e-5)


def work(function):
    compiled = torch.compile(function, backend="inductor", fullgraph=True)
    start.arrive()
    start.wait(60)
    with torch.no_grad():
        return compiled(given).cpu()


threads = [probe.thread(work, function) for function in FUNCTIONS]
for number, (thread, function) in enumerate(zip(threads, FUNCTIONS, strict=True)):
    probe.close(thread.join(200), function(x), f"result in thread {number}", rtol=1e-5, atol=1e-6)
probe.check("TORCHINDUCTOR_NPU_BACKEND" not in os.environ, "the environment is as it was")
