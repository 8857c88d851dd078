"""Asking whether there is a device, and how many, does not initialise one; asking for its properties does.

Launchers count devices and then fork one worker each. A context created by the count is lost in every worker, and
holds memory on device 0 that nobody will use.
"""

# /// script
# [tool.conformance]
# rule = "import/device/1"
# level = "must"
# matrix = { action = ["import", "is_available", "device_count", "accelerator", "get_device_properties", "init"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

action = probe.param("action")
match action:
    case "is_available":
        probe.same(torch.npu.is_available(), True, "torch.npu.is_available()")
    case "device_count":
        probe.check(torch.npu.device_count() >= 1, "torch.npu.device_count() counts", count=torch.npu.device_count())
    case "accelerator":
        probe.same(torch.accelerator.is_available(), True, "torch.accelerator.is_available()")
        probe.equal(torch.accelerator.device_count(), torch.npu.device_count(), "torch.accelerator.device_count()")
    case "get_device_properties":
        probe.device_untouched()
        properties = torch.npu.get_device_properties(0)
        probe.check(properties.total_memory > 0, "properties tell the memory", total_memory=properties.total_memory)
        probe.equal(properties.name, torch.npu.get_device_name(0), "name in the properties")
    case "init":
        probe.device_untouched()
        torch.npu.init()

starts_device = action in ("get_device_properties", "init")
probe.same(torch.npu.is_initialized(), starts_device, "torch.npu.is_initialized()")
if not starts_device:
    probe.device_untouched()
probe.compilers_absent()
