"""What one thread sets in torch._inductor.config reaches another thread for the NPU's keys as it does for torch's own.

Whether a setting of the main thread holds in a worker, torch decides, and not alike in all releases. A worker that has
half of the settings compiles with the program's tuning for another code generator. The control is a key of torch, set
together with npu_backend.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
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

import torch._inductor.compile_fx
import torch._inductor.config as config

npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: None
sys.modules["torch_npu._inductor"] = npu_inductor
model = torch.fx.symbolic_trace(torch.nn.Identity())
seen = []


def compile_fx(module, _inputs, **_):
    seen.append(os.environ.get(VARIABLE))
    return module


torch._inductor.compile_fx.compile_fx = compile_fx
config.get_config_copy()  # from here on the NPU keys exist in every release


def reads():
    """What this thread sees of a key of torch and of the NPU's, and what it compiles with."""
    seen.clear()
    torch._TorchCompileInductorWrapper("default", None, None)(model, [torch.ones(1)])
    return config.kernel_name_max_ops, config.npu_backend, seen[-1]


def in_thread():
    return probe.thread(reads).join()


first = reads()
probe.equal(first[1:], ("default", "default"), "the NPU's key, and what is compiled with, at first")
seen_as = {(first[0], "default", "default"): "neither setting", (77, "some", "some"): "both settings"}


def both_or_neither(found, what):
    probe.check(found in seen_as, f"{what} sees both settings or neither", found=found)
    probe.note(what, seen_as[found])


config.kernel_name_max_ops, config.npu_backend = 77, "some"
probe.equal(reads(), (77, "some", "some"), "this thread, after an assignment")
both_or_neither(in_thread(), "a thread, after an assignment in the main thread")


def assigns():
    config.kernel_name_max_ops, config.npu_backend = first[0], "default"


probe.thread(assigns).join()
both_or_neither(reads(), "the main thread, after an assignment back in a thread")
config.kernel_name_max_ops, config.npu_backend = first[0], "default"

with config.patch(kernel_name_max_ops=77, npu_backend="some"):
    probe.equal(reads(), (77, "some", "some"), "this thread, in its own patch")
    both_or_neither(in_thread(), "a thread, during a patch in the main thread")


def patches():
    with config.patch(kernel_name_max_ops=77, npu_backend="some"):
        patched.arrive()
        looked_at.wait()
        return reads()


patched, looked_at = probe.gate("a thread is in its patch"), probe.gate("the main thread has looked")
thread = probe.thread(patches)
patched.wait()
both_or_neither(reads(), "the main thread, during a patch in a thread")
looked_at.arrive()
probe.equal(thread.join(), (77, "some", "some"), "the thread in its own patch")
for what, found in (("this thread", reads()), ("another thread", in_thread())):
    probe.equal(found, (first[0], "default", "default"), f"{what}, after the patches")
