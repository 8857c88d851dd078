"""`import torch_npu` works in a process where the import of Dynamo is blocked on purpose, and eager work is unharmed.

sys.modules["torch._dynamo"] = None is Python's way to forbid an import; slim deployments do so. The name is in
sys.modules then, but nothing is loaded that could be set up.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops"]
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys

from harness import probe
from cases import _subject as subject

import torch

sys.modules["torch._dynamo"] = None
import torch_npu

probe.same(torch.npu, torch_npu.npu, "torch.npu")
probe.close(torch.ones(3).npu() + 1, torch.full((3,), 2.0), "x + 1 on npu")
probe.same(sys.modules["torch._dynamo"], None, "the block")
with probe.raises(ImportError):
    import torch._dynamo

del sys.modules["torch._dynamo"]
import torch._dynamo

compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.ones(3).npu()), torch.full((3,), 2.0), "compiled x + 1 once the block is gone")
probe.same(subject.dynamo_setup.has_run, True, "whether NPU setup has run once the block is gone")
