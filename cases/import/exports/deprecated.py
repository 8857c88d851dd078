"""An NPU operator called through `torch.` is refused with the name to use, and torch's own functions stay torch's own.

Old programs say torch.npu_rotary_mul. They get an error with the new name; but the same mechanism, applied to an
operator that has a name of torch's, would take a function of torch away.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

from harness import probe

import torch

before = {name: value for name, value in vars(torch).items() if callable(value)}
probe.modules.absent("torch_npu")

import torch_npu

with probe.raises(RuntimeError, match="Use torch_npu.npu_rotary_mul instead"):
    torch.npu_rotary_mul()
probe.check(callable(torch_npu.npu_rotary_mul), "torch_npu.npu_rotary_mul is callable")
operators = set(dir(torch.ops.npu))
probe.check(len(operators) > 100, "the NPU operators are registered", count=len(operators))
changed = sorted(name for name in operators & before.keys() if getattr(torch, name) is not before[name])
probe.equal(changed, [], "functions of torch that an NPU operator of the same name displaced")
