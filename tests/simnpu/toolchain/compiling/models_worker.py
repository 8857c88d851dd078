"""Models compiled by Inductor on the simulated NPU against the same models run eagerly on the CPU.

`models_worker.py REPORT NAME…` writes a JSON line per model: name, how far output and gradients are apart (relative to
the largest number of each tensor, at least 0.01), how often it was compiled, the error.
"""

from __future__ import annotations

import copy
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import torch_npu  # noqa: F401 - brings the device
from torch import Tensor, nn
from torch._dynamo.utils import counters

MODELS: dict[str, Callable[[], dict[str, Any]]] = {}


def case(function: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Registers a case; it returns what is to be reported."""
    MODELS[function.__name__] = function
    return function


def apart(ours: Any, expected: Any) -> float:
    found, wanted = ours.detach().cpu().double(), expected.detach().double()
    assert found.shape == wanted.shape
    return ((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-2)).item()


def compared(module: nn.Module, inputs: Sequence[Tensor], **options: Any) -> dict[str, Any]:
    """The module's scalar result and all gradients, compiled here and eager on the CPU."""
    ours = copy.deepcopy(module).to("npu")
    compiled = torch.compile(ours, backend="inductor", **options)
    given = [each.detach().npu().requires_grad_(each.requires_grad) for each in inputs]
    result, expected = compiled(*given), module(*inputs)
    result.backward()
    expected.backward()
    gradients = []
    pairs = zip([*ours.parameters(), *given], [*module.parameters(), *inputs], strict=True)
    for mine, theirs in pairs:
        if theirs.grad is not None:
            assert mine.grad is not None
            gradients.append(apart(mine.grad, theirs.grad))
    buffers = [apart(mine, theirs) for mine, theirs in zip(ours.buffers(), module.buffers(), strict=True)]
    return {"output": apart(result, expected), "gradients": max(gradients), "buffers": max(buffers, default=0.0)}


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).square().mean()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(32), nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        return (x + F.gelu(self.linear(self.norm(x)))).square().mean()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return (torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ v).square().mean()


class Convnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x))).mean((2, 3)).square().mean()


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 16), nn.Linear(16, 20)

    def forward(self, tokens: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.embedding(tokens)).flatten(0, 1), tokens.flatten())


@case
def mlp() -> dict[str, Any]:
    return compared(MLP(), [torch.randn(4, 16, requires_grad=True)])


@case
def layer_norm_and_gelu() -> dict[str, Any]:
    return compared(Block(), [torch.randn(4, 32, requires_grad=True)])


@case
def attention() -> dict[str, Any]:
    return compared(Attention(), [torch.randn(2, 8, 16, requires_grad=True)])


@case
def convnet_with_batch_norm() -> dict[str, Any]:
    return compared(Convnet(), [torch.randn(2, 3, 8, 8, requires_grad=True)])


@case
def embedding_and_cross_entropy() -> dict[str, Any]:
    return compared(Language(), [torch.randint(20, (2, 6))])


@case
def bfloat16() -> dict[str, Any]:
    return compared(MLP().bfloat16(), [torch.randn(4, 16).bfloat16().requires_grad_()])


@case
def float16() -> dict[str, Any]:
    return compared(Attention().half(), [torch.randn(2, 8, 16).half().requires_grad_()])


@case
def layer_norm_bfloat16() -> dict[str, Any]:
    return compared(Block().bfloat16(), [torch.randn(4, 32).bfloat16().requires_grad_()])


def _sizes(sizes: Sequence[int], *, mark: bool) -> dict[str, Any]:
    def function(x: Tensor) -> Tensor:
        return torch.softmax(x, -1) * 2 + x.sin()

    compiled = torch.compile(function, backend="inductor")
    off, graphs = [], []
    for size in sizes:
        x = torch.randn(size, 24)
        given = x.npu()
        if mark:
            torch._dynamo.mark_dynamic(given, 0)
        off.append(apart(compiled(given), function(x)))
        graphs.append(counters["stats"]["unique_graphs"])
    return {"output": max(off), "graphs": graphs}


@case
def dynamic_when_marked() -> dict[str, Any]:
    return _sizes([5, 9, 17], mark=True)


@case
def dynamic_by_itself() -> dict[str, Any]:
    return _sizes([5, 9, 17], mark=False)


def main(report: str, *names: str) -> None:
    for name in names:
        torch.manual_seed(3)
        torch._dynamo.reset()
        counters.clear()
        record: dict[str, Any] = {"name": name}
        try:
            record |= MODELS[name]()
            torch.npu.synchronize()
        except Exception:
            record["error"] = traceback.format_exc()
        with Path(report).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
