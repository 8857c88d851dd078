"""NPU setup runs inside the import of torch._dynamo also when another importer serves the module.

A finder that was in sys.meta_path when torch_npu was imported must not switch the trigger off: without the setup
Dynamo knows no device npu, and the user sees wrong graphs instead of an import error.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { position = ["behind", "front_before_torch_npu"], create = ["default", "own_module"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys
import types
from importlib.machinery import PathFinder, SourceFileLoader

from harness import probe
from cases import _subject as subject

import torch

NAME = "torch._dynamo"


class OwnModule(types.ModuleType):
    """A loader may choose the class of the module."""


class Loader(SourceFileLoader):
    def create_module(self, spec):
        return OwnModule(spec.name) if probe.param("create") == "own_module" else None


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != NAME:
            return None
        spec = PathFinder.find_spec(name, path, target)
        spec.loader = Loader(name, spec.origin)
        return spec


if probe.param("position") == "front_before_torch_npu":
    sys.meta_path.insert(0, Finder())
import torch_npu

if probe.param("position") == "behind":
    sys.meta_path.insert(sys.meta_path.index(PathFinder), Finder())

import torch._dynamo

probe.equal(
    isinstance(torch._dynamo, OwnModule), probe.param("create") == "own_module", "the loader's module is in use"
)
probe.check(subject.dynamo_setup.has_run, "NPU setup has run when the import statement returns")
probe.check(
    torch._dynamo.device_interface.get_interface_for_device("npu") is not None,
    "Dynamo knows the device npu",
)
probe.modules.absent("torch_npu._inductor")
