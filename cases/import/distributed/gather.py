"""torch.distributed.gather and gather_object serve gloo groups after `import torch_npu` in every documented call form.

Checkpointing and logging gather on the CPU through gloo in jobs whose training runs on HCCL. Both replaced functions
must do what torch's own do there, ranks counted in the group included.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { calls = ["gather_group_dst", "all_others"] }
# timeout = 60
# releases = ">=2.9"
# ///

import torch
import torch.distributed as dist
import torch_npu
from harness import probe

dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
forms = {"default": {}, "dst": {"dst": 0}, "group_dst": {"group_dst": 0}, "group": {"group": dist.group.WORLD}}


def gather(**arguments):
    received = [torch.zeros(3)]
    dist.gather(torch.arange(3.0), received, **arguments)
    return received[0].tolist(), [0.0, 1.0, 2.0]


def gather_object(**arguments):
    received = [None]
    dist.gather_object({"rank": 0}, received, **arguments)
    return received, [{"rank": 0}]


def problem(call):
    function, form = call
    try:
        received, sent = {"gather": gather, "gather_object": gather_object}[function](**forms[form])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if received == sent else f"{received} arrived"


alone = ("gather", "group_dst")
others = [(function, form) for form in forms for function in ("gather", "gather_object") if (function, form) != alone]
judged = [alone] if probe.param("calls") == "gather_group_dst" else others
wrong = {call: text for call in judged if (text := problem(call))}
probe.equal(wrong, {}, "calls that did not gather")
dist.destroy_process_group()
probe.compilers_absent()
