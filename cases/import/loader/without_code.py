"""torch_npu can be imported through a loader that gives no code, as that of pytest's assertion rewriting.

Python asks a loader for exec_module and nothing else. Test runners, coverage tools and packers put loaders of their own
in front, which rewrite or fetch what they execute.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib.machinery
import sys
from pathlib import Path

from harness import probe


class Loader:
    """create_module and exec_module, and nothing that a SourceFileLoader has besides."""

    def __init__(self, path):
        self.path = path

    def create_module(self, _):
        return None

    def exec_module(self, module):
        executed.append(module.__name__)
        exec(compile(self.path.read_bytes(), str(self.path), "exec", dont_inherit=True), vars(module))


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "torch_npu":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loader(Path(spec.origin))
        return spec


executed = []
# In front of Python's own, behind whatever the subject has put there before.
sys.meta_path.insert(len(sys.meta_path) - 1, Finder())

import torch
import torch_npu

probe.check("torch_npu" in executed, "the loader has been asked", executed=len(executed))
probe.equal(torch.ones(2, device="npu").sum().item(), 2.0, "a sum on the NPU")
probe.compilers_absent()
