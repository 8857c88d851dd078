"""`import torch_npu` does not count devices: visibility chosen after it, before the first question, is honoured.

Launch scripts import the framework, work out the local rank and then set ASCEND_RT_VISIBLE_DEVICES. A count taken
during the import would be remembered, and every rank would go for the same device.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["devices>=2"]
# timeout = 60
# releases = ">=2.7.1"
# ///

import os

import torch
import torch_npu
from harness import probe

os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "1"
probe.equal(torch.npu.device_count(), 1, "torch.npu.device_count() with one visible device")
probe.device_untouched()
