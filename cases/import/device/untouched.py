"""Asking whether there is a device, and how many, does not initialise one; asking for its properties does.

Launchers count devices and then fork one worker each. A context created by the count is lost in every worker, and
holds memory on device 0 that nobody will use.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { action = ["questions", "get_device_properties", "init"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

match probe.param("action"):
    case "questions":
        probe.device_untouched()  # by the import alone
        probe.same(torch.npu.is_available(), True, "torch.npu.is_available()")
        probe.device_untouched()
        probe.check(torch.npu.device_count() >= 1, "torch.npu.device_count() counts", count=torch.npu.device_count())
        probe.device_untouched()
        probe.same(torch.accelerator.is_available(), True, "torch.accelerator.is_available()")
        probe.equal(torch.accelerator.device_count(), torch.npu.device_count(), "torch.accelerator.device_count()")
    case "get_device_properties":
        properties = torch.npu.get_device_properties(0)
        probe.check(properties.total_memory > 0, "properties tell the memory", total_memory=properties.total_memory)
        probe.equal(properties.name, torch.npu.get_device_name(0), "name in the properties")
    case "init":
        torch.npu.init()

starts_device = probe.param("action") != "questions"
probe.same(torch.npu.is_initialized(), starts_device, "torch.npu.is_initialized()")
if not starts_device:
    probe.device_untouched()
probe.compilers_absent()
