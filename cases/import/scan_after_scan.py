"""A walk over sys.modules leaves the stand-ins for torchair and npugraph_ex as they were.

A stand-in that remembers the failure of a load which the walk itself set off raises at every later look, even from
hasattr. What a tool has looked at by the way must not decide how the package behaves from then on.
"""

# /// script
# [tool.conformance]
# rule = "import/scan/3"
# level = "must"
# matrix = { package = ["torchair", "npugraph_ex"], walked_for = ["__spec__", "__path__", "__file__"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys

from harness import probe

import torch
import torch_npu

if probe.param("package") not in sys.modules:
    probe.unsupported(f"this torch_npu ships no {probe.param('package')}")
stand_in = sys.modules[probe.param("package")]
try:
    getattr(stand_in, probe.param("walked_for"), None)
except Exception as error:
    probe.note("error", f"{type(error).__name__}: {error}")

probe.same(sys.modules[probe.param("package")], stand_in, "the stand-in after the look")
for name in ("__file__", "x"):
    try:
        found = hasattr(stand_in, name)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    probe.check(isinstance(found, bool), f"hasattr(stand-in, {name!r}) answers yes or no", found=found)
