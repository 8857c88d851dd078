"""Giving npu-backend and npu_backend with different values in one set of options is refused; equal values may pass.

torch spells both alike and lets the later one win, so the order of a dict decides which code generator is used. Two
merged option sets (a library's and the user's) are enough to get there. The refusal is a RuntimeError, as for every
other bad option, names the option, and changes nothing.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { values = ["different", "equal"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

from harness import probe
from cases import _subject as subject

subject.set_generator(None)

import torch
import torch_npu

# Only names that load nothing at construction: the refusal is what counts here.
PAIRS = {
    "different": [("triton_experimental", "ascendc"), ("default", "ascendc")],
    "equal": [("ascendc", "ascendc")],
}


def judge(hyphen, underscore):
    options = {"npu-backend": hyphen, "npu_backend": underscore}
    for given in (options, dict(reversed(options.items()))):
        if hyphen == underscore:
            kept = torch._TorchCompileInductorWrapper("default", given, None).config
            probe.equal(kept, {"npu_backend": "ascendc"}, f"what is kept of {given}")
        else:
            with probe.raises(RuntimeError, "npu.backend"):
                torch.compile(len, backend="inductor", options=given)


probe.each(PAIRS[probe.param("values")], judge)
probe.equal(subject.generator(), None, f"{subject.GENERATOR} afterwards")
probe.modules.absent("torch_npu._inductor")
