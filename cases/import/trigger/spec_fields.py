"""The spec of torch._dynamo carries the same fields as after a plain import.

Reloading, pickling by reference, freezing tools and `help()` read __spec__. A hook that builds a spec of its own must
not lose the origin, the cache file or the search path of the package.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 60
# releases = ">=2.7.1"
# ///

from importlib.machinery import PathFinder

from harness import probe

import torch
import torch_npu

import torch._dynamo


def fields(spec):
    names = ("name", "origin", "cached", "parent", "has_location", "submodule_search_locations")
    return {name: getattr(spec, name) for name in names}


plain = PathFinder.find_spec("torch._dynamo", torch.__path__)
probe.equal(fields(torch._dynamo.__spec__), fields(plain), "the fields of Dynamo's spec")
