"""A child forked while another thread compiles for the NPU can compile itself, at once.

The thread that has chosen a code generator is not in the child; what it holds must not keep the child from choosing
one.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 90
# releases = ">=2.10"
# ///

import os
import sys
import types

from harness import probe

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
os.environ.pop(VARIABLE, None)

import torch
import torch_npu
from torch_npu.utils import _dynamo as npu_dynamo

import torch._inductor.compile_fx

npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: None
sys.modules["torch_npu._inductor"] = npu_inductor
inside, go_on = probe.gate("a thread compiles"), probe.gate("the child has ended")
model = torch.fx.symbolic_trace(torch.nn.Identity())
seen, parent = [], os.getpid()


def compile_fx(module, _inputs, **_):
    if os.getpid() == parent:
        inside.arrive()
        go_on.wait()
    seen.append(os.environ.get(VARIABLE))
    return module


torch._inductor.compile_fx.compile_fx = compile_fx


def compiled(name):
    torch._TorchCompileInductorWrapper("default", {"npu_backend": name}, None)(model, [torch.ones(1)])


def in_child():
    compiled("dvm")
    with npu_dynamo._NpuBackendScope("ascendc_like"):
        seen.append(os.environ.get(VARIABLE))
    return seen


thread = probe.thread(compiled, "mlir")
inside.wait(30)
found = probe.forked(in_child, timeout=15)
go_on.arrive()
thread.join(30)
probe.equal(found, ["dvm", "ascendc_like"], "the variable in the child's compiles")
probe.equal(os.environ.get(VARIABLE), None, "the variable in the parent afterwards")
