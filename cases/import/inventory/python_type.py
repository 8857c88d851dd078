"""Inside a compiled function the type of an NPU stream or event is torch.npu's class, not torch's generic one.

Methods of the NPU classes say super(Stream, self), and users dispatch on the type. With the generic class the method
raises inside the trace, or the branch for NPUs is left out.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.10"
# ///

import torch
import torch_npu
from harness import probe


def exact(x):
    return x + 1 if type(value) is kind else x - 1


def instance(x):
    return x + 1 if isinstance(value, kind) and isinstance(value, generic) else x - 1


# Before 2.12 torch itself takes a stream of any kind for a torch.Stream.
for name in ("Event", "Stream") if torch.__version__ >= "2.12" else ("Event",):
    kind, generic = getattr(torch.npu, name), getattr(torch, name)
    value = kind()
    for function in (exact, instance):
        torch.compiler.reset()
        probe.close(function(torch.ones(3)), torch.full((3,), 2.0), f"{function.__name__} type of {name}, eager")
        compiled = torch.compile(function, backend="eager", fullgraph=True)
        probe.close(compiled(torch.ones(3)), torch.full((3,), 2.0), f"{function.__name__} type of {name}, compiled")
