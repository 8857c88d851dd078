"""Dynamo's device interface "npu", and each of "npu:0" to "npu:31", answers for the NPU.

Inductor, graph partitioning and the autotuner ask the interface, not torch.npu, how many devices there are and which
stream is current. A missing index form fails only on the machine that has that many cards.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["dynamo_before", "dynamo_after"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib

from harness import probe

order = {"dynamo_before": ["torch._dynamo", "torch_npu"], "dynamo_after": ["torch_npu", "torch._dynamo"]}
for name in order[probe.param("order")]:
    importlib.import_module(name)

import torch
from torch._dynamo.device_interface import get_interface_for_device, get_registered_device_interfaces

interface = get_interface_for_device("npu")
for index in range(32):
    probe.same(get_interface_for_device(f"npu:{index}"), interface, f"interface of npu:{index}")
probe.same(get_interface_for_device(torch.device("npu")), interface, "interface of torch.device('npu')")
registered = [name for name, _ in get_registered_device_interfaces() if name.startswith("npu")]
probe.equal(len(registered), 33, "registered NPU names")

probe.check(interface.device_count() > 0, "the interface counts devices", count=interface.device_count())
probe.equal(interface.device_count(), torch.npu.device_count(), "devices the interface counts")
probe.same(interface.is_available(), True, "is_available() of the interface")
probe.same(interface.Event, torch.npu.Event, "Event of the interface")
probe.same(interface.Stream, torch.npu.Stream, "Stream of the interface")
probe.device_untouched()
