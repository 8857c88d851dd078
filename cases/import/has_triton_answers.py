"""has_triton is True for an available CUDA, XPU or NPU with the triton package, and asks no device property.

torch's CUDA check reads the compute capability, which starts a device context. The question is asked during
compilation on machines where that device is only there in name, so availability alone decides. Fake device interfaces
stand in for the devices; reading a property of one is an error.
"""

# /// script
# [tool.conformance]
# rule = "import/has_triton/2"
# level = "must"
# matrix = { device = ["cuda", "xpu", "npu", "none", "all", "no_package"] }
# timeout = 60
# releases = ">=2.9"
# ///

from unittest import mock

import torch.utils._triton
import torch_npu
from harness import probe
from torch._dynamo import device_interface

available = probe.param("device")
questions = []


def fake(device):
    class Fake(device_interface.DeviceInterface):
        @staticmethod
        def is_available():
            questions.append(device)
            return available in (device, "all", "no_package")

        @staticmethod
        def get_device_properties(*_):
            raise AssertionError(f"the properties of {device} were asked for")

        get_compute_capability = device_properties = get_device_properties

        class Worker:
            @staticmethod
            def get_device_properties(*_):
                raise AssertionError(f"the properties of {device} were asked for")

    return Fake


def get_fake(device):
    return fakes[device]


fakes = {name: fake(name) for name in ("cuda", "xpu", "npu", "cpu")}
torch.utils._triton.has_triton.cache_clear()
package = mock.patch.object(torch.utils._triton, "has_triton_package", lambda: available != "no_package")
with package, mock.patch.object(device_interface, "get_interface_for_device", get_fake):
    answer = torch.utils._triton.has_triton()
    again = torch.utils._triton.has_triton()

probe.same(answer, available not in ("none", "no_package"), "has_triton()")
probe.same(again, answer, "has_triton() asked again")
probe.equal(len(set(questions)), len(questions), "questions per device: the answer is cached")
if available == "no_package":
    probe.equal(questions, [], "devices asked though there is no package")
probe.modules.absent("torch_npu._inductor")
probe.device_untouched()
