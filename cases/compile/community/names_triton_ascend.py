"""Where community Triton stands in place of triton-ascend, what Inductor cannot compile for an NPU names triton-ascend.

Both share the import name, and whatever depends on plain triton brings the wrong one. Eager work, wrappers and other
backends must not mind.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops"]
# timeout = 120
# releases = ">=2.13"
# ///

import warnings

from harness import probe

probe.triton("community")
import torch
import torch_npu

warnings.simplefilter("ignore")
x = torch.linspace(-2, 2, 6)
probe.close(
    torch.compile(lambda x: x.sin() + 1, backend="aot_eager", fullgraph=True)(x.npu()), x.sin() + 1, "aot_eager"
)
compiled = torch.compile(lambda x: torch.softmax(x, -1), backend="inductor", fullgraph=True)
with probe.raises(Exception, match="triton-ascend"):
    compiled(x.npu())
probe.close(torch.softmax(x.npu(), -1), torch.softmax(x, -1), "eager after it")
