"""`import torch_npu` adds at most 150 modules to those of `import torch`, and none of what few programs use.

Every process pays for this import: each rank, each data loader worker, each compile worker, each command line tool. An
algebra package that comes along for one isinstance, or 80 modules of trace analysis, cost all of them for the use of
none. What is loaded later must still be there when it is asked for; other rules see to that.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.12"
# ///

import sys

from harness import probe

import torch

before = frozenset(sys.modules)
import torch_npu

added = set(sys.modules) - before
for family in ("torch_npu", "torch", "sympy"):
    probe.note(f"modules_added_{family}", sum(f"{name}.".startswith(f"{family}.") for name in added))
probe.modules.absent(
    "sympy",
    "torch.distributed.checkpoint",
    "torch.distributed.elastic",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "torch_npu.distributed.tensor._matrix_ops",
    "torch_npu.profiler.analysis",
)
probe.check(len(added) <= 150, "at most 150 modules are added", added=len(added), limit=150)
