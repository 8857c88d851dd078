"""torch.compile refuses a wrong mode, option or option type at once, and leaves no trace of an NPU Inductor start.

A typo in a mode is a programming error that must show without a kernel compiler, and a service that catches the error
and goes on must not find its environment switched to another backend.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { environment = ["unset", "dvm"] }
# timeout = 60
# releases = ">=2.10"
# ///

from harness import probe
from cases import _subject as subject

if probe.param("environment") != "unset":
    subject.set_generator(probe.param("environment"))
before = subject.generator()

import torch
import torch_npu

REFUSALS = {
    "mode": ({"mode": "invalid-mode"}, "Unrecognized mode=invalid-mode"),
    "option": ({"options": {"invalid.option": 1}}, "Unexpected optimization option invalid.option"),
}
if torch.__version__ >= "2.12":  # before it was a choice of words, whose type torch does not look at
    for option in ("npu_backend", "npu-backend"):
        REFUSALS[option] = ({"options": {option: 1}}, f"Unexpected type of attr {option}, got int should be str")


def refused(arguments, message):
    for attempt in ("first", "second"):
        with probe.raises(RuntimeError) as caught:
            torch.compile(lambda x: x, backend="inductor", **arguments)
        probe.check(message in str(caught.value), f"the {attempt} refusal says what is wrong", error=str(caught.value))
        probe.equal(subject.inductor_setup.has_run, False, f"Inductor setup has run after the {attempt} refusal")
        probe.equal(subject.inductor_is_loaded(), False, f"NPU Inductor is loaded after the {attempt} refusal")
        probe.equal(subject.generator(), before, f"{subject.GENERATOR} after the {attempt} refusal")


probe.each(REFUSALS, refused)
probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree")
probe.modules.left_to_torch("triton")
probe.device_untouched()
