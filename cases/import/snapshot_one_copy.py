"""`import torch.npu.name` gives the module torch_npu.npu.name itself, and does not run its body a second time.

torch.npu is another name of torch_npu.npu, so both spellings must lead to one module below it. With two copies there
are two GradScaler, two Stream, two tables of memory functions: isinstance says no to an object of the right kind, and
state set in one is not seen by the other.
"""

# /// script
# [tool.conformance]
# rule = "import/snapshot/5"
# level = "must"
# matrix = { name = ["amp", "amp.grad_scaler", "streams", "memory", "random", "graphs", "utils"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib

import torch_npu
from harness import probe

name = probe.param("name")
original = importlib.import_module(f"torch_npu.npu.{name}")
probe.same(importlib.import_module(f"torch.npu.{name}"), original, f"torch.npu.{name}")
probe.same(importlib.import_module(f"torch_npu.npu.{name}"), original, f"torch_npu.npu.{name} imported again")
top = name.partition(".")[0]
probe.same(
    getattr(torch_npu.npu, top), importlib.import_module(f"torch_npu.npu.{top}"), f"attribute {top} of torch_npu.npu"
)
