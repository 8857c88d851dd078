"""What one thread sets in torch._inductor.config reaches another thread for the NPU's keys as it does for torch's own.

Whether a setting of the main thread holds in a worker, torch decides, and not alike in all releases. A worker that has
half of the settings compiles with the program's tuning for another code generator. The control is a key of torch, set
together with npu_backend.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { by = ["assignment", "patch"], in = ["main_thread", "other_thread"] }
# timeout = 120
# releases = ">=2.10"
# ///

import contextlib

from harness import probe
from cases import _subject as subject

subject.set_generator(None)

import torch
import torch_npu

import torch._inductor.config as config

model, compiled_with = torch.fx.symbolic_trace(torch.nn.Identity()), []
subject.fake_npu_inductor()
subject.fake_compile_fx(lambda *_, **__: compiled_with.append(subject.generator()))
config.get_config_copy()  # from here on the NPU keys exist in every release


def reads():
    """What this thread sees of a key of torch and of the NPU's, and what it compiles with."""
    torch._TorchCompileInductorWrapper("default", None, None)(model, [torch.ones(1)])
    return config.kernel_name_max_ops, config.npu_backend, compiled_with.pop()


@contextlib.contextmanager
def assigned():
    config.kernel_name_max_ops, config.npu_backend = SET[:2]
    yield
    config.kernel_name_max_ops, config.npu_backend = UNSET[:2]


def patched():
    return config.patch(kernel_name_max_ops=SET[0], npu_backend=SET[1])


def sets():
    with (assigned if probe.param("by") == "assignment" else patched)():
        is_set.arrive()
        looked_at.wait()
        return reads()


def looks():
    is_set.wait()
    seen = reads()
    looked_at.arrive()
    return seen


UNSET, SET = (config.kernel_name_max_ops, "default", "default"), (77, "some", "some")
is_set, looked_at = probe.gate("a thread has set both keys"), probe.gate("the others have looked")
probe.equal(reads(), UNSET, "what is seen at first")
if probe.param("in") == "main_thread":
    looker = probe.thread(looks)
    probe.equal(sets(), SET, "what the thread that sets them sees")
    seen = looker.join()
else:
    setter = probe.thread(sets)
    seen = looks()
    probe.equal(setter.join(), SET, "what the thread that sets them sees")
probe.check(seen in (UNSET, SET), "another thread sees both settings or neither", found=seen)
probe.note("another thread sees", "both settings" if seen == SET else "neither")
probe.equal(reads(), UNSET, "this thread, afterwards")
probe.equal(probe.thread(reads).join(), UNSET, "another thread, afterwards")
