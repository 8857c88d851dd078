"""Looking at a module of torch_npu (dir, hasattr, inspect.getmembers, a mock's autospec) loads no compiler.

Shells complete names, debuggers and documentation tools list members, tests put specs of modules in their place. None
of them means to use a compiler, and all of them would wait for it.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { look = ["dir", "hasattr", "getmembers", "autospec"] }
# timeout = 120
# releases = ">=2.7.1.post11"
# ///

import inspect
import sys
from unittest import mock

import torch
import torch_npu
from harness import probe

looks = {
    "dir": dir,
    "hasattr": lambda module: [hasattr(module, name) for name in dir(module)],
    "getmembers": inspect.getmembers,
    "autospec": mock.create_autospec,
}
look = looks[probe.param("look")]
modules = [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "torch_npu"]
probe.check(len(modules) > 50, "modules of torch_npu are loaded", count=len(modules))
for module in modules:
    if inspect.ismodule(module):
        look(module)
probe.compilers_absent()
