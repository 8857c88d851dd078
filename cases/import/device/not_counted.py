"""`import torch_npu` asks the runtime for no device count, and makes no call that starts one.

A count during the import talks to the driver in every process that merely imports the package: build tools, data
loader workers, document generators, and machines whose driver is being replaced.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

COUNTS = {"aclrtGetDeviceCount", "drvGetDevNum"}  # CANN's runtime, and the driver below it

calls = probe.device_calls()
probe.note("calls", calls)
counted = {name: times for name, times in calls.items() if name in COUNTS}
probe.equal(counted, {}, "device counts taken by the import")
started = {name: times for name, times in calls.items() if name == "aclInit" or "SetDevice" in name}
probe.equal(started, {}, "calls that start the runtime or a device")

probe.check(torch.npu.device_count() > 0, "the device is there when asked for")
probe.check(
    COUNTS & probe.device_calls().keys(),
    "a later question does reach the runtime, so the count above could have seen one",
)
