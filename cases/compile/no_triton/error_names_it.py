"""Without triton-ascend the error of an Inductor function's first call on an NPU tensor names triton-ascend.

"Device npu not supported" sends a user looking at his device, his driver and his torch. What he needs is the name of
the package to install.
"""

# /// script
# [tool.conformance]
# level = "should"
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///
from harness import probe

# Installed or not: here it is not.
probe.triton("absent")

import torch
import torch_npu

compiled = torch.compile(lambda x: x * 2 + 1)
told = {}
for attempt in ("first", "second"):
    with probe.raises(Exception) as caught:
        compiled(torch.ones(3).npu())
    chain, error = [], caught.value
    while error is not None:
        chain.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    told[attempt] = "\n".join(chain)
unnamed = {attempt: text for attempt, text in told.items() if "triton-ascend" not in text.replace("_", "-")}
probe.equal(unnamed, {}, "errors, with their causes, that do not name triton-ascend")
