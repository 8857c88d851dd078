"""Where torchair or npugraph_ex cannot be loaded, a look at its stand-in raises at most AttributeError, then and later.

The packages need libraries that a machine may lack; that matters to those who use them. A stand-in that tries to load
because somebody reads its __spec__, lets the ImportError out of a getattr with a default, remembers it, and raises it
from every hasattr from then on, punishes a tool that only walked by. Here the packages are made unloadable on
purpose.
"""

# /// script
# [tool.conformance]
# rule = "import/scan/3"
# level = "must"
# matrix = { package = ["torchair", "npugraph_ex"], attribute = ["__spec__", "__path__", "__file__"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys

from harness import probe

import torch
import torch_npu

package, attribute = probe.param("package"), probe.param("attribute")


class Unloadable:
    def find_spec(self, name, *_):
        if name == f"torch_npu.dynamo.{package}":
            raise ImportError("a library that this package needs is missing")


sys.meta_path.insert(0, Unloadable())
stand_in = sys.modules[package]
escaped = {}


def look(name):
    try:
        hasattr(stand_in, name)
    except Exception as error:
        escaped[name] = f"{type(error).__name__}: {str(error)[:120]}"


for name in (attribute, "__file__", "x"):
    look(name)
probe.equal(escaped, {}, f"what escapes from hasattr on the stand-in for {package}")
