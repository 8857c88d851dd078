"""torch.distributed.gather and gather_object serve gloo groups after `import torch_npu` in every documented call form.

Checkpointing and logging gather on the CPU through gloo in jobs whose training runs on HCCL. Both replaced functions
must do what torch's own do there, ranks counted in the group included.
"""

# /// script
# [tool.conformance]
# rule = "import/distributed/4"
# level = "must"
# matrix = { function = ["gather", "gather_object"], form = ["default", "dst", "group_dst", "group"] }
# timeout = 60
# releases = ">=2.9"
# ///

import torch
import torch.distributed as dist
import torch_npu
from harness import probe

dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
arguments = {"default": {}, "dst": {"dst": 0}, "group_dst": {"group_dst": 0}, "group": {"group": dist.group.WORLD}}
arguments = arguments[probe.param("form")]

if probe.param("function") == "gather":
    received = [torch.zeros(3)]
    dist.gather(torch.arange(3.0), received, **arguments)
    probe.close(received, [torch.tensor([0.0, 1.0, 2.0])], "gathered tensors")
else:
    received = [None]
    dist.gather_object({"rank": 0}, received, **arguments)
    probe.equal(received, [{"rank": 0}], "gathered objects")
dist.destroy_process_group()
probe.compilers_absent()
