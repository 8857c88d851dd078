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
FORMS = {"default": {}, "dst": {"dst": 0}, "group_dst": {"group_dst": 0}, "group": {"group": dist.group.WORLD}}


def gather(form):
    received = [torch.zeros(3)]
    dist.gather(torch.arange(3.0), received, **FORMS[form])
    probe.equal(received[0].tolist(), [0.0, 1.0, 2.0], "what was gathered")


def gather_object(form):
    received = [None]
    dist.gather_object({"rank": 0}, received, **FORMS[form])
    probe.equal(received, [{"rank": 0}], "what was gathered")


if probe.param("calls") == "gather_group_dst":
    gather("group_dst")
else:
    probe.each(["default", "dst", "group"], gather)
    probe.each(list(FORMS), gather_object)
dist.destroy_process_group()
probe.compilers_absent()
