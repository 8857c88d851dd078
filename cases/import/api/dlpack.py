"""torch.from_dlpack takes CPU data in every form that torch documents, and shares or copies its memory as asked.

It is the bridge to NumPy, JAX and data loaders. torch_npu replaces it for NPU capsules; CPU exchange must not notice.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { arguments = ["data", "keywords"] }
# timeout = 60
# releases = ">=2.9"
# ///

import numpy
import torch
import torch.utils.dlpack
import torch_npu
from harness import probe


def tensor():
    return torch.arange(4.0, dtype=torch.float64)


def numbers():
    return numpy.arange(4.0)


def judge(source, take, shared=True):
    taken = take(source)
    seen = (taken.dtype, taken.device.type, taken.tolist())
    probe.equal(seen, (torch.float64, "cpu", [0.0, 1.0, 2.0, 3.0]), "what was taken")
    source[0] = 9.0
    probe.equal(taken[0].item(), 9.0 if shared else 0.0, "its first number after a change of the source")


forms = {
    "data": {
        "tensor": (tensor(), torch.from_dlpack),
        "numpy": (numbers(), torch.from_dlpack),
        "capsule": (tensor(), lambda source: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(source))),
    },
    "keywords": {
        "device": (numbers(), lambda source: torch.from_dlpack(source, device="cpu")),
        "copy": (numbers(), lambda source: torch.from_dlpack(source, copy=True), False),
        "no_copy": (numbers(), lambda source: torch.from_dlpack(source, copy=False)),
    },
}
probe.each(forms[probe.param("arguments")], judge)
