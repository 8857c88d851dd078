"""`import torch.npu.name` gives the module torch_npu.npu.name itself, and does not run its body a second time.

torch.npu is another name of torch_npu.npu, so both spellings must lead to one module below it. With two copies there
are two GradScaler, two Stream, two tables of memory functions: isinstance says no to an object of the right kind, and
state set in one is not seen by the other.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib
import sys

import torch_npu
from harness import probe

copies = {}
for name in ("amp", "amp.grad_scaler", "streams", "memory", "random", "graphs", "utils"):
    top = name.partition(".")[0]
    original = importlib.import_module(f"torch_npu.npu.{name}")
    original_top = sys.modules[f"torch_npu.npu.{top}"]
    met = {
        f"torch.npu.{name}": importlib.import_module(f"torch.npu.{name}") is original,
        f"torch_npu.npu.{name} imported again": importlib.import_module(f"torch_npu.npu.{name}") is original,
        f"attribute {top} of torch_npu.npu": getattr(torch_npu.npu, top) is original_top,
    }
    if not all(met.values()):
        copies[name] = [what for what, holds in met.items() if not holds]
probe.equal(copies, {}, "modules of which there are two, and where the other one is met")
