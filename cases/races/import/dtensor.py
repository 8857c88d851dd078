"""A thread that has imported DTensor finds the NPU's strategies in it, also while another imports the NPU's part.

The NPU's part needs DTensor, and DTensor has the NPU's part loaded. Two threads that come from either side each have
what the other one wants; the one that returns first must not return to a DTensor that refuses the NPU's operators.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { other_imports = ["package", "attribute"] }
# timeout = 90
# releases = ">=2.10"
# ///

import importlib
import sys

from harness import probe

import torch
import torch_npu

in_body, body_may_go_on = probe.gate("a thread is in DTensor's body"), probe.gate("DTensor's body may go on")


def hold_up(event, arguments):
    """Where a module is about to be imported, with no lock taken for it yet."""
    if event == "import" and arguments[0].startswith("torch.distributed.tensor.") and not in_body.is_open:
        in_body.arrive()
        body_may_go_on.wait()


def import_dtensor():
    dtensor = importlib.import_module("torch.distributed.tensor")
    return set(dtensor.DTensor._op_dispatcher.sharding_propagator.op_strategy_funcs)


def reach_for_the_npu_s_part():
    if probe.param("other_imports") == "package":
        return importlib.import_module("torch_npu.distributed.tensor")._matrix_ops
    return torch_npu.distributed.tensor._matrix_ops


loaded = "torch.distributed.tensor" in sys.modules
sys.addaudithook(hold_up)
first = probe.thread(import_dtensor)
if not loaded:
    in_body.wait(30)
second = probe.thread(reach_for_the_npu_s_part)
if not loaded:
    second.reach("acquire", 30)
body_may_go_on.arrive()
known = first.join(60)
unknown = [
    name
    for name in ("npu_rms_norm", "npu_fusion_attention", "npu_rotary_mul")
    if getattr(torch.ops.npu, name).default not in known
]
probe.equal(unknown, [], "NPU operators without a strategy when the import of DTensor returns")
second.join(60)
