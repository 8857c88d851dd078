"""TORCH_LOGS turns on the logs of torch_npu's C++ half, too, in every import order.

With autoload, which is the default, torch_npu is imported before torch has read the variable. If torch_npu looks there
at that moment only, the allocator and its kin stay silent, and nothing says that the setting was lost.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["torch_first", "npu_first"], autoload = ["0", "1"] }
# needs = ["ops"]
# timeout = 60
# releases = ">=2.10"
# ///

from harness import probe

ORDERS = {"torch_first": "import torch, torch_npu", "npu_first": "import torch_npu, torch"}
USE = "torch.ones(1, device='npu').cpu()"
SETTINGS = {"TORCH_LOGS": "+memory", "TORCH_DEVICE_BACKEND_AUTOLOAD": probe.param("autoload")}

done = probe.python(f"{ORDERS[probe.param('order')]}; {USE}", env=SETTINGS)
probe.check("PTA CachingAllocator" in done.stderr, "the allocator's work is logged", end=done.stderr[-500:])
