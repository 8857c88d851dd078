"""A device interface that the user has registered for the NPU stays, and what torch_npu registers is registered whole.

An interface of one's own counts streams, mocks a machine, or works around a fault; put in place before torch_npu is
imported, it must not be lost in silence. One that is there under half its names fails only on the cards of the others.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { what = ["kept", "cut"], then = ["setup", "inductor", "generator"] }
# timeout = 120
# releases = ">=2.10"
# ///

import os

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
os.environ["TORCH_WARM_POOL"] = "0"

import torch
from cases import _subject as subject
from harness import probe
from torch._dynamo import device_interface

real = device_interface.register_interface_for_device
calls = []


class Mine(device_interface.DeviceInterface):
    is_available = staticmethod(lambda: True)


def cut(name, interface):
    calls.append(name)
    if len(calls) == 20:
        raise MemoryError("in the middle of the registration")
    real(name, interface)


def load():
    import torch_npu

    if probe.param("then") == "inductor":
        import torch_npu._inductor
    if probe.param("then") == "generator":
        # It has an interface of its own.
        with subject.generator_scope("dvm"):
            pass


def registered():
    return [name for name in device_interface.device_interfaces if name.partition(":")[0] == "npu"]


if probe.param("what") == "kept":
    real("npu", Mine)
    real("npu:1", Mine)
    load()
    for name in ("npu", "npu:1"):
        probe.same(device_interface.get_interface_for_device(name), Mine, f"interface of {name}")
else:
    device_interface.register_interface_for_device = cut
    try:
        load()
    except Exception as error:
        probe.note("raised", repr(error))
    probe.check(len(registered()) in (0, 33), "all names or none", names=registered())
    device_interface.register_interface_for_device = real
    load()
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    probe.equal(len(registered()), 33, "names after a second try")
