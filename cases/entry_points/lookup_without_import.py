"""torch.compile(backend=name) finds an NPU backend through the metadata alone, though nobody imported torch_npu.

With autoload off this is the only way in. The entry point imports torch_npu in the middle of torch's own lookup;
registering the name there as well as in the lookup used to raise "duplicate name".
"""

# /// script
# [tool.conformance]
# rule = "entry_points/lookup/2"
# level = "must"
# matrix = { name = ["npu", "npugraph_ex", "npugraphs"], way = ["lookup", "listing_then_lookup"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import os

from harness import probe

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
from torch._dynamo.backends import registry

probe.modules.absent("torch_npu")
name = probe.param("name")
if probe.param("way") == "listing_then_lookup":
    probe.check(name in torch.compiler.list_backends(), f"{name} is listed without torch_npu")
    probe.modules.absent("torch_npu")

backend = registry.lookup_backend(name)
probe.modules.present("torch_npu")
import torch_npu.dynamo
import torch_npu.utils._dynamo as npu_dynamo

entry = getattr(torch_npu.dynamo, f"_{name}_backend_entrypoint")
probe.same(backend, entry, "what the lookup gave")
probe.same(registry._COMPILER_FNS[name], entry, f"{name} in torch's table")
probe.equal(npu_dynamo._lazy_dynamo_setup.has_run, True, "Dynamo setup has run")

torch_npu.dynamo._register_backends()
probe.same(registry.lookup_backend(name), entry, f"{name} after another registration")
probe.check({"npu", "npugraph_ex", "npugraphs"} <= set(torch.compiler.list_backends()), "all three are listed")
probe.modules.absent("torch_npu._inductor", "triton")
