"""torch.distributed's functions that need an NPU form are those of torch_npu after its import, under each name.

The replacement covers the package and the module that defines the function, because programs use both names; a name
left behind calls an operation that HCCL does not have.
"""

# /// script
# [tool.conformance]
# rule = "import/distributed/2"
# level = "must"
# matrix = { function = ["batch_isend_irecv", "gather", "gather_object", "is_hccl_available", "reinit_process_group"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch.distributed as dist
import torch_npu
from harness import probe

name = probe.param("function")
if name in ("is_hccl_available", "reinit_process_group"):
    probe.same(getattr(dist, name), getattr(torch_npu.distributed, name), f"torch.distributed.{name}")
else:
    ours = getattr(torch_npu.distributed.distributed_c10d, f"_{name}")
    probe.same(getattr(dist, name), ours, f"torch.distributed.{name}")
    probe.same(getattr(dist.distributed_c10d, name), ours, f"torch.distributed.distributed_c10d.{name}")
probe.compilers_absent()
