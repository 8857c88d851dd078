"""After the imports TORCH_DEVICE_BACKEND_AUTOLOAD says what the user had said, "1" when he had said nothing.

torch_npu switches torch's autoload off while it imports torch, to keep out of a circle. The variable belongs to the
user and to every child process he starts: it has to come back, whichever of the two packages he imports first.
"""

# /// script
# [tool.conformance]
# rule = "import/autoload/1"
# level = "must"
# matrix = { value = ["unset", "0", "1"], order = ["torch_first", "npu_first", "npu_only"] }
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

orders = {"torch_first": ["torch", "torch_npu"], "npu_first": ["torch_npu", "torch"], "npu_only": ["torch_npu"]}
for name in orders[probe.param("order")]:
    importlib.import_module(name)

probe.equal(os.environ.get(VARIABLE), "1" if value == "unset" else value, f"{VARIABLE} after the imports")
