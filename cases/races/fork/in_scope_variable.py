"""A child forked while another thread compiles has the user's choice of code generator, not that thread's.

TORCHINDUCTOR_NPU_BACKEND is changed for the time of a compile. Nobody in the child, nor in what the child starts, will
change it back: all its compiles use what some other thread of the parent was compiling with at that moment.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = { chosen = ["none", "dvm"] }
# timeout = 60
# releases = ">=2.10"
# ///

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

subject.fake_npu_inductor()
subject.set_generator(None if probe.param("chosen") == "none" else probe.param("chosen"))
chosen = subject.generator()
inside, go_on = probe.gate("a thread is in its scope"), probe.gate("the child has ended")


def scope():
    with subject.generator_scope("mlir"):
        inside.arrive()
        go_on.wait()


thread = probe.thread(scope)
inside.wait(30)
found = probe.forked(subject.generator, timeout=10)
go_on.arrive()
thread.join(30)
probe.equal(found, chosen, "the variable in the child")
