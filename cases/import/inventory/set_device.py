"""torch.npu.set_device in a compiled function breaks the graph and takes effect; fullgraph refuses it by name.

The device is process state that a graph cannot hold. Folding the call away would silently compute on the old device.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["devices>=2"]
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe


def switch(x):
    y = x + 1
    torch.npu.set_device(1)
    return y + torch.npu.current_device()


torch.npu.set_device(0)
refused = torch.compile(switch, backend="eager", fullgraph=True)
with probe.raises(torch._dynamo.exc.Unsupported, match="set_device"):
    refused(torch.ones(3))
probe.equal(torch.npu.current_device(), 0, "current device after the refusal")

torch.compiler.reset()
compiled = torch.compile(switch, backend="eager")
probe.close(compiled(torch.ones(3)), torch.full((3,), 3.0), "x + 1 + current device")
probe.equal(torch.npu.current_device(), 1, "current device after the call")
