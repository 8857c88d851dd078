"""Giving npu-backend and npu_backend with different values in one set of options is refused; equal values may pass.

torch spells both alike and lets the later one win, so the order of a dict decides which code generator is used. Two
merged option sets (a library's and the user's) are enough to get there. The refusal is a RuntimeError, as for every
other bad option, names the option, and changes nothing.
"""

# /// script
# [tool.conformance]
# rule = "import/precedence/2"
# level = "must"
# matrix = { values = ["different", "default_and_chosen", "equal"], first = ["hyphen", "underscore"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import os

from harness import probe

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
os.environ.pop(VARIABLE, None)

import torch
import torch_npu

# Only names that load nothing at construction: the refusal is what counts here.
hyphen, underscore = {
    "different": ("triton_experimental", "ascendc"),
    "default_and_chosen": ("default", "ascendc"),
    "equal": ("ascendc", "ascendc"),
}[probe.param("values")]
pairs = [("npu-backend", hyphen), ("npu_backend", underscore)]
options = dict(pairs if probe.param("first") == "hyphen" else reversed(pairs))

if probe.param("values") == "equal":
    wrapper = torch._TorchCompileInductorWrapper("default", options, None)
    probe.equal(wrapper.config, {"npu_backend": "ascendc"}, "options as the wrapper keeps them")
else:
    with probe.raises(RuntimeError, match="npu.backend") as caught:
        torch.compile(len, backend="inductor", options=options)
    probe.note("refusal", str(caught.value))
probe.equal(os.environ.get(VARIABLE), None, f"{VARIABLE} afterwards")
probe.modules.absent("torch_npu._inductor")
