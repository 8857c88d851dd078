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

wrong = {}


def judge(form, source, take, copied=False):
    try:
        taken = take(source)
    except Exception as error:
        wrong[form] = f"{type(error).__name__}: {error}"
        return
    found = [(taken.dtype, taken.device.type, taken.tolist())]
    source[0] = 9.0
    found.append(taken[0].item())
    expected = [(torch.float64, "cpu", [0.0, 1.0, 2.0, 3.0]), 0.0 if copied else 9.0]
    if found != expected:
        wrong[form] = f"{found}, not {expected}"


if probe.param("arguments") == "data":
    judge("tensor", torch.arange(4.0, dtype=torch.float64), torch.from_dlpack)
    judge("numpy", numpy.arange(4.0), torch.from_dlpack)
    from_capsule = torch.utils.dlpack.from_dlpack
    judge(
        "capsule",
        torch.arange(4.0, dtype=torch.float64),
        lambda source: from_capsule(torch.utils.dlpack.to_dlpack(source)),
    )
else:
    judge("device", numpy.arange(4.0), lambda source: torch.from_dlpack(source, device="cpu"))
    judge("copy", numpy.arange(4.0), lambda source: torch.from_dlpack(source, copy=True), copied=True)
    judge("no_copy", numpy.arange(4.0), lambda source: torch.from_dlpack(source, copy=False))
probe.equal(wrong, {}, "forms of from_dlpack that fail, or share memory when they should copy, or the reverse")
