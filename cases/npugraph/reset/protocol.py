"""torch.compiler.reset() resets the graph trees once when they are loaded, and loads nothing when they are not.

torch calls reset on the backend in its table, so that object must be the one that knows the trees, whether npugraphs
was looked up first or an Inductor wrapper was made before. A test suite resets after every test; most of them never
use graphs.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { registration = ["cold", "hot"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import sys
import types

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

NAME = "torch_npu.npu._graph_tree"
if probe.param("registration") == "hot":
    torch.compile(lambda x: x + 1, backend="inductor")
torch.compile(lambda x: x + 1, backend="npugraphs")

from torch._dynamo.backends import registry

backend = registry.lookup_backend("npugraphs")
probe.same(registry._COMPILER_FNS["npugraphs"], backend, "the backend in torch's table")
probe.same(backend, subject.npugraphs_entry_point, "the entry point's own object")

for reset in (backend.reset, torch.compiler.reset, torch._dynamo.reset):
    probe.same(reset(), None, f"result of {reset.__qualname__} without graph trees")
    probe.modules.absent(NAME, "torch_npu._inductor")
    probe.modules.left_to_torch("triton")

# torch remembers a backend from torch.compile on, until a reset.
calls = []
graph_tree = types.ModuleType(NAME)
graph_tree.reset_npugraph_trees = lambda: calls.append("reset")
sys.modules[NAME] = graph_tree
for turn, reset in enumerate((torch.compiler.reset, torch._dynamo.reset, backend.reset), start=1):
    torch.compile(lambda x: x + 1, backend="npugraphs")
    reset()
    probe.equal(calls, ["reset"] * turn, f"resets of the graph trees after {reset.__qualname__}")
probe.device_untouched()
