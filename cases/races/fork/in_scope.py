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

from harness import probe
from cases import _subject as subject

subject.set_generator(None)

import torch
import torch_npu

inside, go_on = probe.gate("a thread compiles"), probe.gate("the child has ended")
model = torch.fx.symbolic_trace(torch.nn.Identity())
seen, parent = [], os.getpid()


def on_compile(*_, **__):
    if os.getpid() == parent:
        inside.arrive()
        go_on.wait()
    seen.append(subject.generator())


subject.fake_npu_inductor()
subject.fake_compile_fx(on_compile)


def compiled(name):
    torch._TorchCompileInductorWrapper("default", {"npu_backend": name}, None)(model, [torch.ones(1)])


def in_child():
    compiled("dvm")
    with subject.generator_scope("ascendc_like"):
        seen.append(subject.generator())
    return seen


thread = probe.thread(compiled, "mlir")
inside.wait(30)
found = probe.forked(in_child, timeout=15)
go_on.arrive()
thread.join(30)
probe.equal(found, ["dvm", "ascendc_like"], "the variable in the child's compiles")
probe.equal(subject.generator(), None, "the variable in the parent afterwards")
