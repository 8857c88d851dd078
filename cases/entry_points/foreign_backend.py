"""A callable that another package registered as "npu" before does not stop setup, and the NPU backend takes the name.

Two packages may claim one name. The import of torch_npu, and Dynamo's, must survive it, and backend="npu" must mean
the NPU.
"""

# /// script
# [tool.conformance]
# rule = "entry_points/register/3"
# level = "must"
# matrix = { name = ["npu", "npugraph_ex"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import os

from harness import probe

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch._dynamo
from torch._dynamo.backends import registry

name = probe.param("name")
registry.list_backends()


def foreign(module, _):
    return module.forward


torch._dynamo.register_backend(foreign, name)
probe.same(registry.lookup_backend(name), foreign, f"{name} before torch_npu")

import torch_npu
import torch_npu.utils._dynamo as npu_dynamo

probe.equal(npu_dynamo._lazy_dynamo_setup.has_run, True, "Dynamo setup has run")
probe.equal(registry.lookup_backend(name).__module__, "torch_npu.dynamo", f"home of backend {name}")
probe.check(name in registry.list_backends(), f"{name} is listed")
