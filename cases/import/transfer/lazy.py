"""transfer_to_npu loads no compiler until something is compiled, and the compiler then gets its patches.

A training script that never compiles pays several seconds and a thousand modules in each process for them. One torch
version could not even load Inductor at that point, and every migrated script failed at its first line.
"""

# /// script
# [tool.conformance]
# level = "should"
# timeout = 120
# releases = ">=2.7.1"
# ///

import warnings

from harness import probe

warnings.simplefilter("ignore")
import torch
import torch_npu
from torch_npu.contrib import transfer_to_npu

probe.compilers_absent()
import torch._inductor.compile_fx

probe.same(torch._inductor.compile_fx.has_triton, torch.utils._triton.has_triton, "has_triton of compile_fx")
if torch.__version__ >= "2.12":
    # Before, torch_npu answered this in NPU Inductor only.
    probe.equal(torch._inductor.utils.get_gpu_type(), "npu", "kind of GPU that Inductor sees")
