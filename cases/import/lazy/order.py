"""`import torch_npu` loads no compiler and leaves the device alone, in every order with torch.

Most programs never compile. They pay for Dynamo, Inductor and Triton in start-up time and memory, and a process that
forks its workers after the import must not own a device context yet. Which of torch and torch_npu is imported first
is decided by import sorters and by torch's autoload, not by the user, so it must make no difference.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["torch_first", "npu_first", "torch_only"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib
import os

from harness import probe

if probe.param("order") == "torch_only":
    os.environ.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)  # unset means on, as on a user's machine
sequence = {
    "torch_first": ["torch", "torch_npu"],
    "npu_first": ["torch_npu", "torch_npu", "torch"],  # alone, then a second time, then torch
    "torch_only": ["torch"],  # torch's autoload brings torch_npu in
}
modules = {}
for name in sequence[probe.param("order")]:
    module = importlib.import_module(name)
    probe.same(module, modules.setdefault(name, module), f"what another import of {name} gives")
    probe.compilers_absent()
    probe.device_untouched()

# The import must have done its work, else there is nothing to praise in its lightness.
probe.modules.present("torch", "torch_npu", "torch_npu.npu", "torch_npu._C")
import torch
import torch_npu

probe.same(torch.npu, torch_npu.npu, "torch.npu")
probe.equal(torch._C._get_accelerator().type, "npu", "torch's accelerator")
probe.check(torch.npu.device_count() > 0, "the device is visible", count=torch.npu.device_count())
probe.compilers_absent()
probe.device_untouched()
probe.note("modules", len(probe.modules.loaded()))
