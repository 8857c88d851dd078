"""A model compiled by Inductor for an NPU gives eager's results and gradients.

The whole way is real: Dynamo, NPU Inductor, Triton, the kernels on the device, in the forward and the backward graph.
What is compared is eager on the CPU, so that an operator of the device that is wrong in both ways shows, too.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { model = ["perceptron", "attention", "embedding"] }
# needs = ["ops", "triton", "kernels"]
# timeout = 240
# releases = ">=2.13"
# ///

import copy

import torch
import torch_npu
from harness import probe
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(16, 48)

    def forward(self, x):
        query, key, value = self.project(x).chunk(3, -1)
        return torch.softmax(query @ key.transpose(-1, -2) / 4, -1) @ value


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(11, 8), nn.Linear(8, 5)

    def forward(self, tokens):
        return F.cross_entropy(self.head(self.embedding(tokens)), tokens % 5)


MODELS = {
    "perceptron": (nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)), torch.randn(6, 8)),
    "attention": (Attention(), torch.randn(2, 7, 16)),
    "embedding": (Loss(), torch.arange(7)),
}
model, given = MODELS[probe.param("model")]
on_npu = copy.deepcopy(model).npu()
compiled = torch.compile(on_npu, backend="inductor", fullgraph=True)

expected, found = model(given), compiled(given.npu())
probe.close(found, expected, "result", rtol=1e-4, atol=1e-5)
expected.square().sum().backward()
found.square().sum().backward()
for (name, wanted), parameter in zip(model.named_parameters(), on_npu.parameters(), strict=True):
    probe.close(parameter.grad, wanted.grad, f"gradient of {name}", rtol=1e-3, atol=1e-5)
probe.check(probe.device_calls().get("rtKernelLaunch", 0) > 0, "kernels of Triton were launched")
