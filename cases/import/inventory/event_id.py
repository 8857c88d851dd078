"""Inside a compiled function id() of an NPU event is a constant, the same as outside.

Profilers and communication libraries key tables by id(event). Unfolded, the call breaks the graph; folded to the id
of a stand-in it looks up the wrong entry.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

events = {"first": torch.npu.Event(), "second": torch.npu.Event()}


def look_up(x, name):
    return x + 1, id(events[name])


compiled = torch.compile(look_up, backend="eager", fullgraph=True)
for name, event in events.items():
    value, identity = compiled(torch.ones(3), name)
    probe.close(value, torch.full((3,), 2.0), f"tensor result with the {name} event")
    probe.equal(identity, id(event), f"id of the {name} event")
