"""After transfer_to_npu has_triton is one function wherever torch looks it up.

It answers no: migrated scripts must not go through CUDA's Triton code. Inductor asks in several modules; if one of
them has the old function, the scheduler plans for a Triton that the code generator does not use.
"""

# /// script
# [tool.conformance]
# level = "should"
# timeout = 120
# releases = ">=2.9"
# ///

import sys
import warnings

from harness import probe

warnings.simplefilter("ignore")
import torch
import torch_npu
import torch._inductor.compile_fx


def holders():
    """The modules of torch that hold a function has_triton, with what it stands for."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("torch.") and callable(getattr(module, "__dict__", {}).get("has_triton")):
            found[name] = vars(module)["has_triton"]
    return found


def judge(when):
    for name, function in holders().items():
        probe.same(function, torch.utils._triton.has_triton, f"has_triton of {name} {when}")


seen = holders().keys()
probe.check({"torch.utils._triton", "torch._inductor.compile_fx"} <= seen, "torch's modules are seen", seen=seen)
judge("before transfer_to_npu")

from torch_npu.contrib import transfer_to_npu

judge("after transfer_to_npu")
probe.same(torch.utils._triton.has_triton(), False, "has_triton()")
