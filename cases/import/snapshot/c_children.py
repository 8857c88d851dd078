"""Each child of the extension module torch_npu._C is both an attribute and an importable module.

Native modules inside one shared library have no file of their own. Only the package can announce them, and `from
torch_npu._C._distributed_c10d import X` works for a user only when it did.
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


def judge(child):
    name = f"torch_npu._C.{child}"
    module = getattr(torch_npu._C, child, None)
    probe.equal(type(module).__name__, "module", f"kind of the attribute {name}")
    probe.same(sys.modules.get(name), module, f"sys.modules[{name!r}]")
    probe.same(importlib.import_module(name), module, "what its import gives")
    probe.check(not all(inner.startswith("__") for inner in dir(module)), "it has names of its own")


probe.each(("_profiler", "_distributed_c10d", "_cd", "_logging", "_flops_count"), judge)
