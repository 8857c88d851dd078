"""Making a wrapper of Inductor loads no NPU Inductor; its first call does, registers the NPU, and runs kernels.

With everything real, from torch.compile to the kernel; the chain with recorders in place of the compiler is a rule of
its own.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "triton", "kernels"]
# timeout = 180
# releases = ">=2.13"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

compiled = torch.compile(lambda x: torch.softmax(x * 2, -1), fullgraph=True)
probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run once a wrapper is made")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run once a wrapper is made")
probe.modules.absent("torch_npu._inductor")

x = torch.linspace(-3, 3, 60).reshape(4, 15)
probe.close(compiled(x.npu()), torch.softmax(x * 2, -1), "result")
launches = probe.device_calls()["rtKernelLaunch"]
probe.check(launches > 0, "kernels of Triton were launched")
probe.equal(subject.inductor_setup.has_run, True, "Inductor setup has run after the first call")
probe.equal(subject.inductor_is_loaded(), True, "NPU Inductor is initialised")
probe.close(compiled(x.npu() + 1), torch.softmax((x + 1) * 2, -1), "result of a second call")
probe.check(probe.device_calls()["rtKernelLaunch"] > launches, "the second call launched kernels")

from torch._inductor import codecache, compile_fx
from torch._inductor.codegen.common import get_device_op_overrides
from torch._inductor.utils import GPU_TYPES
from torch.utils import _triton

probe.check("npu" in GPU_TYPES, "npu counts as a GPU for Inductor")
probe.check(type(get_device_op_overrides("npu")).__module__.startswith("torch_npu"), "the NPU has its device overrides")
probe.same(compile_fx.has_triton, _triton.has_triton, "has_triton, as Inductor has bound it")
probe.check(_triton.has_triton(), "Triton can be used")
probe.check(codecache.CacheBase.get_system()["hash"], "the caches know what system they are for")
