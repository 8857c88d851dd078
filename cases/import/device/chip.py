"""Asking what the chip can do (bfloat16, infinities) initialises no device: a process can fork afterwards.

Mixed precision asks for bfloat16 when a script sets it up, before data loaders and launchers fork. A user of the device
cannot be forked; the name of the chip is enough to answer.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { question = ["is_bf16_supported", "is_support_inf_nan"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

home = torch.npu if probe.param("question") == "is_bf16_supported" else torch_npu.npu.utils
ask = getattr(home, probe.param("question"))
answer = ask()
probe.check(answer in {True, False}, "the question is answered", answer=answer)
probe.same(torch.npu.is_initialized(), False, "torch.npu.is_initialized() afterwards")
probe.device_untouched()
probe.equal(probe.forked(lambda: torch.ones(2, device="npu").sum().item()), 2.0, "a sum in a child forked afterwards")
torch.npu.init()
probe.equal(ask(), answer, "the answer of a process that uses the device")
