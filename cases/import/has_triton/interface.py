"""has_triton registers the NPU device interface exactly once when triton is there, and not at all when it is not.

Inductor may ask has_triton before anything else has set Dynamo up for the NPU. Without the interface the answer is
wrong; with a second registration Inductor sees the NPU twice.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.9"
# ///

import sys
import types
from unittest import mock

import torch.utils._triton
import torch_npu
from harness import probe
from cases import _subject as subject

# Dynamo's own import would run the whole setup; take it out so that has_triton is the first to need the interface.
with subject.replaced("dynamo_setup", lambda: None):
    from torch._dynamo import device_interface

registered = []


class Recording(dict):
    """The table of interfaces, which writes down each registration for the NPU."""

    def __setitem__(self, device, interface):
        if str(device).startswith("npu"):
            registered.append(str(device))
        super().__setitem__(device, interface)

    def update(self, interfaces):
        for device, interface in interfaces.items():
            self[device] = interface


table = Recording(device_interface.device_interfaces)
triton = types.ModuleType("triton")
triton.backends = types.ModuleType("triton.backends")
triton.backends.backends = {}  # before 2.13 it is asked whether Triton serves the CPU, too
present = {"triton": triton, "triton.backends": triton.backends}


def ask(package):
    patched = mock.patch.object(torch.utils._triton, "has_triton_package", lambda: package)
    recorded = mock.patch.object(device_interface, "device_interfaces", table)
    with patched, recorded, mock.patch.dict(sys.modules, present):
        for turn in ("first", "second"):
            torch.utils._triton.has_triton.cache_clear()
            probe.same(torch.utils._triton.has_triton(), package, f"has_triton() asked the {turn} time, {package=}")


ask(package=False)
probe.equal(registered, [], "registered NPU devices without the package")
ask(package=True)
probe.equal(registered, ["npu", *(f"npu:{index}" for index in range(32))], "registered NPU devices, in order")
probe.modules.absent("torch_npu._inductor")
