"""Where torchair or npugraph_ex cannot be loaded, a look at its stand-in raises at most AttributeError, then and later.

The packages need libraries that a machine may lack; that matters to those who use them. A stand-in that tries to load
because somebody reads its __spec__, lets the ImportError out of a getattr with a default, remembers it, and raises it
from every hasattr from then on, punishes a tool that only walked by. Here the packages are made unloadable on
purpose.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { attribute = ["__spec__", "__path__", "__file__"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys

from harness import probe

import torch
import torch_npu

PACKAGES = ("torchair", "npugraph_ex")


class Unloadable:
    def find_spec(self, name, *_):
        if name in [f"torch_npu.dynamo.{package}" for package in PACKAGES]:
            raise ImportError("a library that this package needs is missing")


sys.meta_path.insert(0, Unloadable())
escaped = {}


def look(package, name):
    try:
        hasattr(sys.modules[package], name)
    except Exception as error:
        escaped[f"{package}.{name}"] = f"{type(error).__name__}: {str(error)[:120]}"


for package in PACKAGES:
    for name in (probe.param("attribute"), "__file__", "x"):
        look(package, name)
probe.equal(escaped, {}, "what escapes from hasattr on the stand-ins")
