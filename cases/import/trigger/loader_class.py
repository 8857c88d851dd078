"""Once the trigger has fired, the module and its spec hold the real loader again.

A loader is also recognised by its class: `isinstance(module.__loader__, SourceFileLoader)` is how tools tell a source
module from a compiled or zipped one. A wrapper that stays behind for the life of the process answers no.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = {}
# timeout = 60
# releases = ">=2.7.1"
# ///

from importlib.machinery import PathFinder

from harness import probe

import torch
import torch_npu

import torch._dynamo

plain = type(PathFinder.find_spec("torch._dynamo", torch.__path__).loader)
found = {"__loader__": type(torch._dynamo.__loader__), "__spec__.loader": type(torch._dynamo.__spec__.loader)}
probe.equal(found, dict.fromkeys(found, plain), "the classes of Dynamo's loaders")
