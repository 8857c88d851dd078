"""A callable that another package registered as "npu" before does not stop setup, and the NPU backend takes the name.

Two packages may claim one name. The import of torch_npu, and Dynamo's, must survive it, and backend="npu" must mean
the NPU.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

from harness import probe
from cases import _subject as subject

import torch._dynamo
from torch._dynamo.backends import registry

registry.list_backends()
NAMES = ("npu", "npugraph_ex")


def foreign(module, _):
    return module.forward


for name in NAMES:
    torch._dynamo.register_backend(foreign, name)
    probe.same(registry.lookup_backend(name), foreign, f"{name} before torch_npu")

import torch_npu

probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run")
homes = {name: registry.lookup_backend(name).__module__ for name in NAMES}
probe.equal(homes, dict.fromkeys(NAMES, "torch_npu.dynamo"), "homes of the backends")
probe.equal([name for name in NAMES if name not in registry.list_backends()], [], "backends that are not listed")
