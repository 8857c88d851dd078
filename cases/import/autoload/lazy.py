"""However autoload is set, whichever of torch and torch_npu comes first: no compiler is loaded, no device touched.

With autoload on, `import torch` alone brings torch_npu in from the inside of torch's own import; with it off the user
does so himself. The two ways run the same code at different moments, and laziness must not depend on the moment.
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
importlib.import_module(order[0])
if order[0] == "torch":
    loaded = "torch_npu" in probe.modules.loaded()
    probe.equal(loaded, value != "0", "whether `import torch` has brought torch_npu in")
importlib.import_module(order[1])

probe.compilers_absent()
probe.device_untouched()
