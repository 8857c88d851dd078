"""A child process started after the imports sees the user's own TORCH_DEVICE_BACKEND_AUTOLOAD.

Data loaders, compile workers and launchers inherit the environment. A "0" left behind means that their `import torch`
brings no NPU, and the failure shows far away from its cause. Python's os.environ and the C environment that a child
gets are two things; the child is the judge.
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
import subprocess
import sys

from harness import probe

VARIABLE = "TORCH_DEVICE_BACKEND_AUTOLOAD"
value = probe.param("value")
os.environ.pop(VARIABLE, None)
if value != "unset":
    os.environ[VARIABLE] = value

order = ["torch", "torch_npu"] if probe.param("order") == "torch_first" else ["torch_npu", "torch"]
for name in order:
    importlib.import_module(name)

code = f"import os; print(os.environ.get({VARIABLE!r}))"
spawned = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

forked = probe.forked(lambda: str(os.environ.get(VARIABLE)))

expected = "1" if value == "unset" else value
probe.equal({"spawned": spawned, "forked": forked}, {"spawned": expected, "forked": expected}, f"{VARIABLE} in a child")
