"""torch.distributed's functions that need an NPU form are those of torch_npu after its import, under each name.

The replacement covers the package and the module that defines the function, because programs use both names; a name
left behind calls an operation that HCCL does not have.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch.distributed as dist
import torch_npu
from harness import probe

c10d = dist.distributed_c10d
ours = {
    (owner, name): getattr(torch_npu.distributed.distributed_c10d, f"_{name}")
    for owner in (dist, c10d)
    for name in ("batch_isend_irecv", "gather", "gather_object")
}
ours |= {(dist, name): getattr(torch_npu.distributed, name) for name in ("is_hccl_available", "reinit_process_group")}
others = [
    f"{owner.__name__}.{name}" for (owner, name), function in ours.items() if getattr(owner, name) is not function
]
probe.equal(others, [], "functions that are not torch_npu's")
probe.compilers_absent()
