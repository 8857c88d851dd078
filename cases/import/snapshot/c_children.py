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

wrong = {}
for child in ("_profiler", "_distributed_c10d", "_cd", "_logging", "_flops_count"):
    name = f"torch_npu._C.{child}"
    module = getattr(torch_npu._C, child, None)
    if type(module).__name__ != "module":
        wrong[name] = f"is no module but {module!r}"
    elif sys.modules.get(name) is not module:
        wrong[name] = f"is {sys.modules.get(name)} in sys.modules"
    elif importlib.import_module(name) is not module:
        wrong[name] = "is another object when imported"
    elif all(inner.startswith("__") for inner in dir(module)):
        wrong[name] = "is empty"
probe.equal(wrong, {}, "children of torch_npu._C that are not both attribute and module")
