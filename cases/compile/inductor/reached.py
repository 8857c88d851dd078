"""The first call of a function compiled by Inductor reaches Inductor once, with NPU setup done; making it does not.

The chain is: torch.compile makes a wrapper (Dynamo setup), the first call loads NPU Inductor for the chosen code
generator (Inductor setup), then torch's compile_fx is called. Both the code generator and compile_fx are recorders.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

from harness import probe
from cases import _subject as subject

import torch
import torch_npu
from torch import nn

events = []
subject.fake_compile_fx(lambda *_, **__: events.append(f"compile_fx, Inductor setup {subject.inductor_setup.has_run}"))
probe.modules.absent("torch_npu._inductor")
subject.fake_npu_inductor(on_load=lambda: events.append("NPU Inductor"))

x = torch.arange(4.0)
function = torch.compile(lambda x: x * 2 + 1, fullgraph=True)
module = torch.compile(nn.Sequential(nn.Flatten(0), nn.ReLU()), backend="inductor", mode="max-autotune-no-cudagraphs")
probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run once a wrapper is made")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run once a wrapper is made")
probe.equal(events, [], "what has happened once two wrappers are made")

probe.close(function(x.npu()), x * 2 + 1, "result of the function")
probe.equal(events, ["NPU Inductor", "compile_fx, Inductor setup True"], "what the first call did")
probe.equal(subject.inductor_is_loaded(), True, "NPU Inductor is initialised")
function(x.npu() + 1)
probe.equal(len(events), 2, "what has happened after a second call")
probe.close(module(x.npu() - 2), (x - 2).relu(), "result of the module")
probe.equal(events[2:], ["compile_fx, Inductor setup True"], "what the first call of the module did")

from torch._dynamo.device_interface import get_interface_for_device

probe.equal(get_interface_for_device("npu").device_count(), torch.npu.device_count(), "devices of the interface")
probe.check(torch.npu.device_count() > 0, "there is a device")
