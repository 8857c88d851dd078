"""After `import torch_npu` has_triton is the NPU-aware function wherever torch looks it up, with Triton not loaded.

torch's own version asks CUDA, XPU and CPU only and answers False on an NPU machine; Inductor would then refuse to
generate kernels. The replacement must not import triton merely to be in place.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.9"
# ///

from harness import probe
from cases import _subject as subject

import torch.utils._triton

bound_before = torch.utils._triton.has_triton
probe.modules.absent("torch_npu")

import torch_npu

probe.same(torch.utils._triton.has_triton, subject.has_triton, "torch.utils._triton.has_triton")
probe.check(bound_before is not subject.has_triton, "torch's own function was replaced, not the name alone")
probe.compilers_absent()

# A module of torch that binds the name at its own import must be served after the replacement.
import torch._inductor.compile_fx
import torch._inductor.scheduler

try:
    import torch_npu._inductor
except ModuleNotFoundError as error:
    if error.name != "triton" or torch.__version__ >= "2.12":
        raise
    # Before 2.12 a wheel's NPU Inductor may need Triton at import. Without Triton the answer is no, whoever asks.
    probe.same(torch._inductor.compile_fx.has_triton(), False, "compile_fx.has_triton() without Triton")
else:
    new = torch.utils._triton.has_triton
    probe.same(torch._inductor.compile_fx.has_triton, new, "compile_fx.has_triton")
    probe.same(torch._inductor.scheduler.has_triton, new, "scheduler.has_triton")
