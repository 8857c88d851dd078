"""Another importer in sys.meta_path still decides where torch._dynamo comes from.

Coverage tools, frozen applications and type checkers install finders of their own. The trigger watches Dynamo's
import; it must ask those finders just as Python would (once, with the package's search path and no target) and take
the module they give, whether the finder was there before torch_npu or came later.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { position = ["behind", "front_before_torch_npu", "front_after_torch_npu"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys
from importlib.machinery import PathFinder, SourceFileLoader

from harness import probe

import torch

NAME = "torch._dynamo"
asked = []


class MarkingLoader(SourceFileLoader):
    def exec_module(self, module):
        module.__served_by__ = "the user's finder"
        super().exec_module(module)


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != NAME:
            return None
        asked.append((list(path), target))
        spec = PathFinder.find_spec(name, path, target)
        spec.loader = MarkingLoader(name, spec.origin)
        return spec


position = probe.param("position")
if position == "front_before_torch_npu":
    sys.meta_path.insert(0, Finder())
import torch_npu

if position == "front_after_torch_npu":
    sys.meta_path.insert(0, Finder())
elif position == "behind":
    sys.meta_path.insert(sys.meta_path.index(PathFinder), Finder())

import torch._dynamo

probe.equal(asked, [(list(torch.__path__), None)], "questions put to the user's finder, as (path, target)")
probe.equal(getattr(torch._dynamo, "__served_by__", None), "the user's finder", "who served torch._dynamo")
