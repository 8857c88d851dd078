"""The collective backends hccl and lccl serve device npu, and the RPC backend NPU_TENSORPIPE is registered.

`init_process_group(backend="hccl")` right after the import is the first line of every distributed NPU job.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch.distributed as dist
import torch_npu
from harness import probe

for name in ("hccl", "lccl"):
    probe.equal(dist.Backend.backend_list.count(name), 1, f"entries of {name} in the list of backends")
    probe.equal(dist.Backend.backend_capability[name], ["npu"], f"devices that {name} serves")
    probe.equal(dist.Backend(name), name, f"Backend({name!r})")
probe.equal(dist.Backend.default_device_backend_map.get("npu"), "hccl", "default backend of device npu")
probe.equal(dist.Backend.default_device_backend_map.get("cpu"), "gloo", "default backend of device cpu")
probe.same(dist.is_hccl_available(), True, "torch.distributed.is_hccl_available()")

from torch.distributed.rpc.backend_registry import BackendType, backend_registered

probe.same(backend_registered("NPU_TENSORPIPE"), True, "NPU_TENSORPIPE is a registered RPC backend")
probe.equal(BackendType["NPU_TENSORPIPE"].name, "NPU_TENSORPIPE", "RPC backend type")
probe.same(backend_registered("TENSORPIPE"), True, "torch's own TENSORPIPE stays registered")
probe.compilers_absent()
probe.device_untouched()
