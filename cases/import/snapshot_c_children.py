"""Each child of the extension module torch_npu._C is both an attribute and an importable module.

Native modules inside one shared library have no file of their own. Only the package can announce them, and `from
torch_npu._C._distributed_c10d import X` works for a user only when it did.
"""

# /// script
# [tool.conformance]
# rule = "import/snapshot/2"
# level = "must"
# matrix = { child = ["_profiler", "_distributed_c10d", "_cd", "_logging", "_flops_count"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib
import sys

import torch_npu
from harness import probe

child = probe.param("child")
module = getattr(torch_npu._C, child)
probe.equal(type(module).__name__, "module", f"type of torch_npu._C.{child}")
probe.same(sys.modules.get(f"torch_npu._C.{child}"), module, f"torch_npu._C.{child} in sys.modules")
probe.same(importlib.import_module(f"torch_npu._C.{child}"), module, f"import torch_npu._C.{child}")
probe.check(any(not name.startswith("__") for name in dir(module)), f"torch_npu._C.{child} is not empty")
