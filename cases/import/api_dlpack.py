"""torch.from_dlpack takes CPU data in every form that torch documents, and shares or copies its memory as asked.

It is the bridge to NumPy, JAX and data loaders. torch_npu replaces it for NPU capsules; CPU exchange must not notice.
"""

# /// script
# [tool.conformance]
# rule = "import/api/2"
# level = "must"
# matrix = { form = ["tensor", "numpy", "capsule", "device", "copy", "no_copy"] }
# timeout = 60
# releases = ">=2.9"
# ///

import numpy
import torch
import torch.utils.dlpack
import torch_npu
from harness import probe

source = numpy.arange(4.0)
form = probe.param("form")
match form:
    case "tensor":
        source = torch.arange(4.0, dtype=torch.float64)
        taken = torch.from_dlpack(source)
    case "numpy":
        taken = torch.from_dlpack(source)
    case "capsule":
        source = torch.arange(4.0, dtype=torch.float64)
        taken = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(source))
    case "device":
        taken = torch.from_dlpack(source, device="cpu")
    case "copy":
        taken = torch.from_dlpack(source, copy=True)
    case "no_copy":
        taken = torch.from_dlpack(source, copy=False)

probe.close(taken, torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64), "the data taken over")
source[0] = 9.0
probe.equal(taken[0].item(), 0.0 if form == "copy" else 9.0, "first element after the source has changed")
