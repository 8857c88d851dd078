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

import os
import re

from harness import probe

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
os.environ.pop(VARIABLE, None)

import torch
import torch_npu

# Only names that load nothing at construction: the refusal is what counts here.
pairs = {
    "different": [("triton_experimental", "ascendc"), ("default", "ascendc")],
    "equal": [("ascendc", "ascendc")],
}[probe.param("values")]


def refusal(options):
    try:
        torch.compile(len, backend="inductor", options=options)
    except RuntimeError as error:
        return str(error)
    return "accepted"


wrong = {}
for hyphen, underscore in pairs:
    spelt = [("npu-backend", hyphen), ("npu_backend", underscore)]
    for options in (dict(spelt), dict(reversed(spelt))):
        if hyphen == underscore:
            found = torch._TorchCompileInductorWrapper("default", options, None).config
            as_it_must = found == {"npu_backend": "ascendc"}
        else:
            found = refusal(options)
            as_it_must = re.search("npu.backend", found) is not None
        if not as_it_must:
            wrong[f"{options}"] = found
probe.check(not wrong, "different values are refused by name, equal ones kept as one option", **wrong)
probe.equal(os.environ.get(VARIABLE), None, f"{VARIABLE} afterwards")
probe.modules.absent("torch_npu._inductor")
