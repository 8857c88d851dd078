"""The spec of torch._dynamo carries the same fields as after a plain import.

Reloading, pickling by reference, freezing tools and `help()` read __spec__. A hook that builds a spec of its own must
not lose the origin, the cache file or the search path of the package.
"""

# /// script
# [tool.conformance]
# rule = "import/trigger/3"
# level = "must"
# matrix.field = ["name", "origin", "cached", "parent", "has_location", "submodule_search_locations"]
# timeout = 60
# releases = ">=2.7.1"
# ///

from importlib.machinery import PathFinder

from harness import probe

import torch
import torch_npu

import torch._dynamo

field = probe.param("field")
plain = PathFinder.find_spec("torch._dynamo", torch.__path__)
probe.equal(getattr(torch._dynamo.__spec__, field), getattr(plain, field), f"field {field} of Dynamo's spec")
