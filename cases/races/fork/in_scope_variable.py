"""A child forked while another thread compiles has the user's choice of code generator, not that thread's.

TORCHINDUCTOR_NPU_BACKEND is changed for the time of a compile. Nobody in the child, nor in what the child starts, will
change it back: all its compiles use what some other thread of the parent was compiling with at that moment.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = {}
# timeout = 60
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

npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: None
sys.modules["torch_npu._inductor"] = npu_inductor


def value():
    return os.environ.get(VARIABLE)


def child_of_a_scope():
    inside, go_on = probe.gate("a thread is in its scope"), probe.gate("the child has ended")

    def scope():
        with npu_dynamo._NpuBackendScope("mlir"):
            inside.arrive()
            go_on.wait()

    thread = probe.thread(scope)
    inside.wait(30)
    found = probe.forked(value, timeout=10)
    go_on.arrive()
    thread.join(30)
    return found


found = {}
for choice in (None, "dvm"):
    if choice is not None:
        os.environ[VARIABLE] = choice
    found[choice] = child_of_a_scope()
probe.equal(found, {choice: choice for choice in found}, "the variable in the child, by the user's choice")
