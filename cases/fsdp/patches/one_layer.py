"""torch_npu's patches of FSDP lie there once, however often and from wherever they are applied.

A reload while developing, a copy of the module under another name, a profiler's patch above or below: if a flag of the
module says what has been patched, each application puts one more layer around every forward and backward pass.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { applied_by = ["reload", "copy"], others = ["none", "above", "below"] }
# timeout = 60
# releases = ">=2.10"
# ///

import importlib
import sys

from harness import probe
from cases import _subject as subject

import torch_npu
from torch.distributed.fsdp._fully_shard import _fsdp_collectives, _fsdp_param_group, _fsdp_state

NAME = "torch_npu.distributed.fsdp._add_fsdp_patch"
OWNERS = (
    _fsdp_collectives,
    _fsdp_collectives.DefaultAllGather,
    _fsdp_collectives.DefaultReduceScatter,
    _fsdp_param_group,
    _fsdp_param_group.FSDPParamGroup,
    _fsdp_state.FSDPState,
)
PLACES = [(owner, name) for owner in OWNERS for name, value in list(vars(owner).items()) if hasattr(value, "__code__")]


def layers():
    return {
        f"{owner.__name__}.{name}": count
        for owner, name in PLACES
        if (count := subject.layers_of_torch_npu(getattr(owner, name)))
    }


if probe.param("others") == "below":
    subject.wrap_as_others_do(PLACES)
module = importlib.import_module(NAME)
module._apply_fsdp_enhance_patch()
once = layers()
probe.check(any("post_forward" in place for place in once), "a forward pass is patched", layers=once)
probe.equal(set(once.values()), {1}, "layers of each place")
if probe.param("others") == "above":
    subject.wrap_as_others_do(PLACES)
for _ in range(3):
    if probe.param("applied_by") == "reload":
        importlib.reload(module)
    else:
        del sys.modules[NAME]
        module = importlib.import_module(NAME)
    module._apply_fsdp_enhance_patch()
probe.equal(layers(), once, "layers after three more times")
