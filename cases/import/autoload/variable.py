"""After the imports TORCH_DEVICE_BACKEND_AUTOLOAD says what the user had said, "1" when he had said nothing.

torch_npu switches torch's autoload off while it imports torch, to keep out of a circle. The variable belongs to the
user and to every child process he starts: it has to come back, whichever of the two packages he imports first.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { value = ["unset", "0", "1"], order = ["torch_first", "npu_first"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib
import os

from harness import probe

VARIABLE = "TORCH_DEVICE_BACKEND_AUTOLOAD"
value = probe.param("value")
os.environ.pop(VARIABLE, None)
if value != "unset":
    os.environ[VARIABLE] = value

order = ["torch", "torch_npu"] if probe.param("order") == "torch_first" else ["torch_npu", "torch"]
for name in order:
    importlib.import_module(name)
    if "torch_npu" in probe.modules.loaded():
        probe.equal(os.environ.get(VARIABLE), "1" if value == "unset" else value, f"{VARIABLE} after import {name}")
