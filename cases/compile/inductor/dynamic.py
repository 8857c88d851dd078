"""A dimension marked dynamic, or found to be, is compiled by Inductor once for all sizes, with eager's results."""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { dynamic = ["marked", "automatic"] }
# needs = ["ops", "triton", "kernels"]
# timeout = 180
# releases = ">=2.13"
# ///

import torch
import torch_npu
from harness import probe
from torch._dynamo.utils import counters


def function(x):
    return (torch.softmax(x, -1) * x).sum(-1) + x.shape[0]


compiled = torch.compile(function, backend="inductor", fullgraph=True)
# The first automatic graph is for one size; the second size shows that it varies.
graphs = {"marked": 1, "automatic": 2}[probe.param("dynamic")]
for rows in (5, 8, 13, 3):
    x = torch.linspace(-2, 2, rows * 6).reshape(rows, 6)
    given = x.npu()
    if probe.param("dynamic") == "marked":
        torch._dynamo.mark_dynamic(given, 0)
    probe.close(compiled(given), function(x), f"result for {rows} rows", rtol=1e-5, atol=1e-6)
probe.equal(counters["stats"]["unique_graphs"], graphs, "graphs compiled for four sizes")
