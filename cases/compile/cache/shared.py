"""A second process that compiles the same function for an NPU takes it from the caches, with the same result.

Inductor's cache of graphs and Triton's of kernels are what makes the second start of a program quick. An NPU's part
that changes its keys from process to process silently makes every start the first.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "triton", "kernels"]
# timeout = 240
# releases = ">=2.13"
# ///

import json
import os
from pathlib import Path

import torch
from harness import probe

PROGRAM = """
import json
import torch, torch_npu
from torch._dynamo.utils import counters

x = torch.linspace(-2, 2, 40).reshape(8, 5).npu()
compiled = torch.compile(lambda x: torch.softmax(x, -1) + x.sum(), backend="inductor", fullgraph=True)
result = compiled(x).tolist()
print(json.dumps([result, counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"]]))
"""


def compiled():
    return json.loads(probe.python(PROGRAM).stdout.splitlines()[-1])


def kernels():
    return {str(file): file.stat().st_mtime_ns for file in Path(os.environ["TRITON_CACHE_DIR"]).rglob("*.npubin")}


x = torch.linspace(-2, 2, 40).reshape(8, 5)
result, hits, misses = compiled()
probe.close(torch.tensor(result), torch.softmax(x, -1) + x.sum(), "result of the first process", rtol=1e-5, atol=1e-5)
probe.equal((hits, misses), (0, 1), "hits and misses of the first process")
made = kernels()
probe.check(made, "the first process has kept kernels")
again, hits, misses = compiled()
probe.equal(again, result, "result of the second process")
probe.equal((hits, misses), (1, 0), "hits and misses of the second process")
probe.equal(kernels(), made, "kernels kept after the second process")
