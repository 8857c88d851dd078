"""importlib.reload(torch._dynamo) after the trigger has fired gives the same, working module.

Notebooks reload packages by habit. The module keeps its identity, and compiling with it works afterwards, as it does
in plain torch.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { used_before = [false, true] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib

from harness import probe

import torch
import torch_npu

import torch._dynamo


def double(x):
    return x * 2


if probe.param("used_before"):
    probe.equal(
        torch.compile(double, backend="eager")(torch.ones(3)).tolist(), [2.0] * 3, "a compiled function, before"
    )

module = torch._dynamo
for times in (1, 2):  # once, and twice in a row
    for _ in range(times):
        probe.same(importlib.reload(torch._dynamo), module, "what reload returns")
    torch._dynamo.reset()
    probe.equal(
        torch.compile(double, backend="eager")(torch.ones(3)).tolist(), [2.0] * 3, "a compiled function, after reload"
    )
    probe.equal(
        torch._dynamo.device_interface.get_interface_for_device("npu").device_count(),
        torch.npu.device_count(),
        "devices that Dynamo counts for npu",
    )
probe.modules.absent("torch_npu._inductor")
