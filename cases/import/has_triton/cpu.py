"""A CPU counts for has_triton only when the caller includes it and Triton lists a CPU backend.

With a CPU counted by itself every machine with any Triton "has" it, and NPU-only checks (templates, autotuning) go
wrong.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.13"
# ///

import sys
import types
from unittest import mock

import torch.utils._triton
import torch_npu
from harness import probe
from torch._dynamo import device_interface


class Present(device_interface.DeviceInterface):
    is_available = staticmethod(lambda: True)


class Missing(device_interface.DeviceInterface):
    is_available = staticmethod(lambda: False)


triton, backends = types.ModuleType("triton"), types.ModuleType("triton.backends")
triton.backends = backends


def interface(device):
    return Present if device == "cpu" else Missing


answers = {}
with (
    mock.patch.dict(sys.modules, {"triton": triton, "triton.backends": backends}),
    mock.patch.object(torch.utils._triton, "has_triton_package", lambda: True),
    mock.patch.object(device_interface, "get_interface_for_device", interface),
):
    for include_cpu in (True, False):
        for listed in ("cpu", "npu"):
            backends.backends = {listed: object()}
            torch.utils._triton.has_triton.cache_clear()
            answers[include_cpu, listed] = torch.utils._triton.has_triton(include_cpu=include_cpu)

expected = {key: key == (True, "cpu") for key in answers}
probe.equal(answers, expected, "has_triton(include_cpu=…) on a CPU, by include_cpu and listed backend")
