"""has_triton is True for an available CUDA, XPU or NPU with the triton package, and asks no device property.

torch's CUDA check reads the compute capability, which starts a device context. The question is asked during
compilation on machines where that device is only there in name, so availability alone decides. Fake device interfaces
stand in for the devices; reading a property of one is an error.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.9"
# ///

from unittest import mock

import torch.utils._triton
import torch_npu
from harness import probe
from torch._dynamo import device_interface

CONFIGURATIONS = ("cuda", "xpu", "npu", "none", "all", "no_package")
available = "none"
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


def judge(configuration):
    global available  # noqa: PLW0603
    available = configuration
    questions.clear()
    torch.utils._triton.has_triton.cache_clear()
    package = mock.patch.object(torch.utils._triton, "has_triton_package", lambda: available != "no_package")
    with package, mock.patch.object(device_interface, "get_interface_for_device", get_fake):
        answers = [torch.utils._triton.has_triton() for _ in range(2)]
    probe.equal(answers, [available not in ("none", "no_package")] * 2, "the answers to two questions")
    probe.equal(len(questions), len(set(questions)), "times that devices were asked, whose answer is cached")
    if available == "no_package":
        probe.equal(questions, [], "devices that were asked though there is no package")
    if available == "npu":
        probe.check("npu" in questions, "the NPU was asked", asked=questions)


probe.each(CONFIGURATIONS, judge)
probe.modules.absent("torch_npu._inductor")
probe.device_untouched()
