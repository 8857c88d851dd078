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

import os

from harness import probe

if probe.param("environment") != "unset":
    os.environ["TORCHINDUCTOR_NPU_BACKEND"] = probe.param("environment")
before = os.environ.get("TORCHINDUCTOR_NPU_BACKEND")

import torch
import torch_npu.utils._dynamo as npu_dynamo

wrong = {
    "mode": ({"mode": "invalid-mode"}, "Unrecognized mode=invalid-mode"),
    "option": ({"options": {"invalid.option": 1}}, "Unexpected optimization option invalid.option"),
    "npu_backend": ({"options": {"npu_backend": 1}}, "Unexpected type of attr npu_backend, got int should be str"),
    "npu-backend": ({"options": {"npu-backend": 1}}, "Unexpected type of attr npu-backend, got int should be str"),
}
if torch.__version__ < "2.12":  # npu_backend is a choice of words there, whose type torch does not look at
    del wrong["npu_backend"], wrong["npu-backend"]
for argument, (arguments, message) in wrong.items():
    for attempt in ("first", "second"):
        which = f"{attempt} refusal of a wrong {argument}"
        with probe.raises(RuntimeError) as caught:
            torch.compile(lambda x: x, backend="inductor", **arguments)
        probe.check(message in str(caught.value), f"the {which} says what is wrong", error=str(caught.value))
        probe.equal(npu_dynamo._lazy_inductor_setup.has_run, False, f"Inductor setup has run after the {which}")
        probe.equal(npu_dynamo.is_inductor_npu_initialized(), False, f"NPU Inductor initialised after the {which}")
        probe.equal(os.environ.get("TORCHINDUCTOR_NPU_BACKEND"), before, f"TORCHINDUCTOR_NPU_BACKEND after the {which}")
probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree")
probe.modules.left_to_torch("triton")
probe.device_untouched()
