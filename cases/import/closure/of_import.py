"""The whole set of modules that `import torch_npu` loads contains no part of a compiler.

Not the module named by the user but the last one in a chain of fifty imports is what makes a start slow: one
annotation or one convenience re-export is enough to pull Dynamo in. So the judgement is over everything that was
loaded, even if it was removed from sys.modules again. The size of the set and the CPU time are recorded, for
comparison between releases.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["torch_first", "npu_first", "autoload"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib
import os
import time

from harness import probe

order = probe.param("order")
if order == "autoload":
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"
start = time.process_time()
if order == "torch_first":
    importlib.import_module("torch")
torch_alone = probe.modules.snapshot()
torch_seconds = time.process_time() - start
importlib.import_module("torch" if order == "autoload" else "torch_npu")

if order == "torch_first":
    added = probe.modules.new_since(torch_alone)
    probe.note("cpu_seconds_torch_npu", round(time.process_time() - start - torch_seconds, 2))
    probe.note("modules_added_by_torch_npu", len(added))
    for family in ("torch_npu", "torch.distributed", "sympy", "mpmath"):
        probe.note(f"modules_added_{family}", sum(f"{name}.".startswith(f"{family}.") for name in added))
probe.note("cpu_seconds", round(time.process_time() - start, 2))
probe.note("modules", len(probe.modules.loaded()))

probe.modules.present("torch_npu", "torch_npu.npu")
probe.compilers_absent()
probe.device_untouched()
