"""The sub-modules that user code reaches through `torch_npu.` without importing them are loaded by `import torch_npu`.

`torch_npu.optim.NpuFusedAdam` or `torch_npu.distributed.rpc` after a single `import torch_npu` is how every NPU
program is written; laziness may not take these away.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.10"
# ///

import operator
import sys

import torch_npu
from harness import probe

NAMES = """
    npu npu.amp npu.aclnn optim dynamo _logging _afd profiler distributed distributed.rpc distributed.nn
    distributed.nn.functional op_plugin op_plugin.meta op_plugin.meta._meta_registrations asd.checksum utils._dynamo
    utils.custom_ops utils.patch_getenv utils.syncbatchnorm
"""
for name in NAMES.split():
    full = f"torch_npu.{name}"
    probe.check(full in sys.modules, f"{full} is loaded")
    probe.same(operator.attrgetter(name)(torch_npu), sys.modules[full], f"{full} as an attribute")
