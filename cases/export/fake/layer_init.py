"""Making a layer of fake NPU tensors where there is no NPU works or raises; it does not end the process.

The constructor of a layer fills its weights at random. Where fake tensors cannot do that without a device, an
exception can be caught, shown and worked around; an abort inside a device guard takes the whole export job with it.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 60
# releases = ">=2.7.1"
# ///

import os

from harness import probe

os.environ["ASCEND_RT_VISIBLE_DEVICES"] = ""

import torch
import torch_npu

from torch._subclasses.fake_tensor import FakeTensorMode


def make_layer():
    with FakeTensorMode():
        try:
            layer = torch.nn.Linear(4, 4, device="npu:0")
        except RuntimeError as error:
            return str(error)
        return str(layer.weight.device)


probe.equal(torch.npu.is_available(), False, "torch.npu.is_available()")
answer = probe.forked(make_layer)
probe.check("npu" in answer.lower(), "the layer is on the NPU, or the error is about the NPU", answer=answer)
