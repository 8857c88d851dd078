"""After transfer_to_npu a function can be compiled where triton-ascend is installed, too.

With Triton at hand torch asks "the GPU" for its capability at the first compile. The NPU, which answers for it then,
has none to tell.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "triton"]
# timeout = 90
# releases = ">=2.13"
# ///

import warnings

from harness import probe

warnings.simplefilter("ignore")
import torch
import torch_npu
from torch_npu.contrib import transfer_to_npu

x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
compiled = torch.compile(lambda value: value.to("cuda") * 2 + 1, backend="aot_eager", fullgraph=True)
result = compiled(x)
probe.equal(result.device.type, "npu", "device of the result")
probe.close(result, x * 2 + 1, "result")
