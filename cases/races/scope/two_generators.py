"""Two threads that compile with different code generators each see their own, and the variable is afterwards as before.

TORCHINDUCTOR_NPU_BACKEND belongs to the process, a compile to its thread. Without order between the two, one compiles
with the generator of the other, and the process keeps whichever ended last: every later compile, and every child
process, uses a generator that nobody chose. Each thread stays in its compile until the other one is in its own, or is
taken to wait for the first one's end.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { by = ["compile", "scope"] }
# timeout = 90
# releases = ">=2.10"
# ///

import threading

from harness import probe
from cases import _subject as subject

subject.set_generator(None)

import torch
import torch_npu

PATIENCE = 4.0  # seconds after which a thread that has not come into its compile is taken to wait for the other's end

model = torch.fx.symbolic_trace(torch.nn.Identity())
inside = {name: threading.Event() for name in ("mlir", "dvm")}
left = {name: threading.Event() for name in inside}
seen = {name: [] for name in inside}
other = {"mlir": "dvm", "dvm": "mlir"}
mine = threading.local()


def compiling(*_, **__):
    """What both threads do while they compile: the first one leaves first, while the second is still inside."""
    name = mine.name
    seen[name].append(subject.generator())
    inside[name].set()
    if inside[other[name]].wait(0 if left[other[name]].is_set() else PATIENCE) and name == "dvm":
        left["mlir"].wait(PATIENCE)
    seen[name].append(subject.generator())


subject.fake_npu_inductor()
subject.fake_compile_fx(compiling)


def work(name):
    mine.name = name
    if probe.param("by") == "scope":
        with subject.generator_scope(name):
            compiling()
    else:
        torch._TorchCompileInductorWrapper("default", {"npu_backend": name}, None)(model, [torch.ones(1)])
    left[name].set()


with subject.generator_scope("default"):  # the setups are done before the threads meet
    pass
with torch.no_grad():
    first = probe.thread(work, "mlir")
    probe.check(inside["mlir"].wait(30), "the first thread compiles")
    second = probe.thread(work, "dvm")
    first.join(30)
    second.join(30)
probe.equal(
    seen, {"mlir": ["mlir"] * 2, "dvm": ["dvm"] * 2}, "the variable in each thread, on entry and before the end"
)
probe.equal(subject.generator(), None, "the variable afterwards")
