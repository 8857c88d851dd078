"""flex_attention works on NPU tensors, whether it is imported before torch_npu or after.

torch's own check of devices knows no NPU, so a backend replaces it. Where that happens must not depend on who came
first, and tensors of two devices are refused as ever.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { first = ["torch_npu", "flex_attention"] }
# releases = ">=2.13"
# ///

import importlib

from harness import probe

import torch

names = {"torch_npu": "torch_npu", "flex_attention": "torch.nn.attention.flex_attention"}
first = probe.param("first")
for name in sorted(names, key=lambda name: name != first):
    importlib.import_module(names[name])

from torch.nn.attention.flex_attention import flex_attention

query, key, value = torch.randn(3, 1, 2, 16, 16).unbind()
expected = torch.nn.functional.scaled_dot_product_attention(query, key, value)
with torch.no_grad():
    found = flex_attention(query.npu(), key.npu(), value.npu())
probe.equal(found.device.type, "npu", "device of the result")
probe.close(found.cpu(), expected, "attention on the NPU")
with probe.raises(ValueError, match="same device"):
    flex_attention(query.npu(), key, value.npu())
