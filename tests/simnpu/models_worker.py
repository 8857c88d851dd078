"""Trains small models on the CPU and on the simulated NPU from the same seed, and reports how far the two came apart.

Run as `models_worker.py REPORT`; writes one JSON line per model: name, steps, losses of both, differences, error.
"""

from __future__ import annotations

import json
import math
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import torch_npu
from torch import Tensor, nn

STEPS = 20
Training = Callable[[str], tuple[list[float], list[Tensor]]]
MODELS: dict[str, Training] = {}


def model(training: Training) -> Training:
    """Registers a training: takes the device, returns the loss of each step and what the model holds in the end."""
    MODELS[training.__name__] = training
    return training


def batches(shape: tuple[int, ...], device: str) -> Iterator[Tensor]:
    """Two batches in turn, so that the loss falls. The same numbers for each device: they are drawn on the CPU."""
    generator = torch.Generator().manual_seed(7)
    drawn = [torch.randn(shape, generator=generator) for _ in range(2)]
    for step in range(STEPS):
        yield drawn[step % 2].to(device)


def made(build: Callable[[], nn.Module], device: str) -> nn.Module:
    torch.manual_seed(3)
    return build().to(device)


def state(module: nn.Module) -> list[Tensor]:
    """Parameters, buffers (running statistics) and the last gradients."""
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    return [tensor.detach().cpu() for tensor in (*module.parameters(), *module.buffers(), *gradients)]


def train(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    inputs: Iterator[Tensor],
    loss_of: Callable[[nn.Module, Tensor], Tensor],
    autocast: Callable[[], Any] = nullcontext,
) -> tuple[list[float], list[Tensor]]:
    losses = []
    for batch in inputs:
        optimizer.zero_grad()
        with autocast():
            loss = loss_of(module, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, state(module)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))


def regression(module: nn.Module, batch: Tensor) -> Tensor:
    return F.mse_loss(module(batch), batch[:, :3] * batch[:, 3:6])


@model
def mlp(device: str) -> tuple[list[float], list[Tensor]]:
    module = made(perceptron, device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    return train(module, optimizer, batches((16, 12), device), regression)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Linear(8, 4)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images).flatten(1))


def classification(module: nn.Module, images: Tensor) -> Tensor:
    brightest = images.mean((2, 3)).argmax(1)  # 0 to 2: something that can be learned
    return F.cross_entropy(module(images), brightest)


@model
def convnet_with_batch_norm(device: str) -> tuple[list[float], list[Tensor]]:
    module = made(Convolutions, device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses, held = train(module, optimizer, batches((8, 3, 12, 12), device), classification)
    module.eval()  # the running statistics in use
    with torch.no_grad():
        judged = module(next(batches((8, 3, 12, 12), device)))
    return losses, [*held, judged.cpu()]


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.places = nn.Embedding(10, 16)
        layer = nn.TransformerEncoderLayer(16, nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 20)

    def forward(self, words: Tensor) -> Tensor:
        places = torch.arange(words.shape[1], device=words.device)
        mask = torch.full((words.shape[1], words.shape[1]), -math.inf, device=words.device).triu(1)
        return self.head(self.encoder(self.words(words) + self.places(places), mask=mask))


def words(device: str) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(11)
    for _ in range(STEPS):
        start = torch.randint(0, 20, (6, 1), generator=generator)
        yield ((start + 3 * torch.arange(9)) % 20).to(device)


def next_word(module: nn.Module, text: Tensor) -> Tensor:
    return F.cross_entropy(module(text[:, :-1]).reshape(-1, 20), text[:, 1:].reshape(-1))


@model
def transformer(device: str) -> tuple[list[float], list[Tensor]]:
    module = made(Language, device)
    # Not Adam: a key's bias has no effect, and Adam would blow up the rounding errors that are its gradient.
    optimizer = torch.optim.SGD(module.parameters(), lr=0.3)
    return train(module, optimizer, words(device), next_word)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, values: Tensor) -> Tensor:
        query, key, value = self.project(values).chunk(3, dim=-1)
        heads = [part.unflatten(-1, (2, 4)).transpose(1, 2) for part in (query, key, value)]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


@model
def scaled_dot_product_attention(device: str) -> tuple[list[float], list[Tensor]]:
    module = made(Attention, device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.2)
    inputs = batches((4, 6, 8), device)
    return train(module, optimizer, inputs, lambda m, x: F.smooth_l1_loss(m(x), x.cumsum(1) / 3))


@model
def adamw_with_weight_decay(device: str) -> tuple[list[float], list[Tensor]]:
    module = made(perceptron, device)
    matrices = [p for p in module.parameters() if p.ndim == 2]
    vectors = [p for p in module.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.2}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    losses = []
    for batch in batches((16, 12), device):
        optimizer.zero_grad()
        loss = regression(module, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    moments = [value.cpu() for held in optimizer.state.values() for value in held.values()]
    return losses, [*state(module), *moments]


@model
def autocast_bfloat16(device: str) -> tuple[list[float], list[Tensor]]:
    module = made(perceptron, device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)

    def checked(module: nn.Module, batch: Tensor) -> Tensor:
        out = module(batch)
        assert out.dtype is torch.bfloat16, out.dtype
        return F.mse_loss(out.float(), batch[:, :3])

    autocast = lambda: torch.autocast(torch.device(device).type, torch.bfloat16)  # noqa: E731
    return train(module, optimizer, batches((16, 12), device), checked, autocast)


@model
def gradient_scaling(device: str) -> tuple[list[float], list[Tensor]]:
    module = made(perceptron, device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=2.0**10, growth_interval=5)
    losses, scales = [], []
    for step, batch in enumerate(batches((16, 12), device)):
        optimizer.zero_grad()
        loss = regression(module, batch)
        # One overflow on the way: that step must be skipped and the scale halved.
        scaler.scale(loss * math.inf if step == 8 else loss).backward()
        scaler.unscale_(optimizer)
        before = [parameter.detach().clone() for parameter in module.parameters()]
        scaler.step(optimizer)
        scaler.update()
        if step == 8:
            assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True)), (
                "a step on infinities"
            )
        scales.append(scaler.get_scale())
        losses.append(loss.item())
    assert scales[8] == scales[7] / 2, scales
    assert max(scales) > 2.0**10, scales
    return losses, [*state(module), torch.tensor(scales)]


class Recurrent(nn.Module):
    def __init__(self, kind: Callable[..., nn.RNNBase]) -> None:
        super().__init__()
        self.cell = kind(6, 10, batch_first=True)
        self.head = nn.Linear(10, 6)

    def forward(self, values: Tensor) -> Tensor:
        return self.head(self.cell(values)[0])


def recurrent(kind: Callable[..., nn.RNNBase], device: str) -> tuple[list[float], list[Tensor]]:
    module = made(lambda: Recurrent(kind), device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.2)
    inputs = batches((4, 5, 6), device)
    return train(module, optimizer, inputs, lambda m, x: F.mse_loss(m(x), x.cumsum(1) / 2))


@model
def lstm(device: str) -> tuple[list[float], list[Tensor]]:
    return recurrent(nn.LSTM, device)


@model
def gru(device: str) -> tuple[list[float], list[Tensor]]:
    return recurrent(nn.GRU, device)


def difference(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, relative to the largest of the CPU's numbers (at least 1)."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    assert ours.dtype == theirs.dtype, (ours.dtype, theirs.dtype)
    finite = torch.isfinite(theirs)
    assert torch.equal(finite, torch.isfinite(ours)), "infinities in other places"
    if not finite.any():
        return 0.0
    ours, theirs = ours[finite].double(), theirs[finite].double()
    return ((ours - theirs).abs().max() / max(1.0, theirs.abs().max().item())).item()


def judge(name: str) -> dict[str, Any]:
    record: dict[str, Any] = {"name": name, "error": None}
    try:
        losses, held = MODELS[name]("cpu")
        npu_losses, npu_held = MODELS[name]("npu")
        assert len(held) == len(npu_held)
        record |= {
            "losses": losses,
            "npu_losses": npu_losses,
            "loss_difference": max(abs(a - b) for a, b in zip(losses, npu_losses, strict=True)),
            "state_difference": max(difference(a, b) for a, b in zip(npu_held, held, strict=True)),
        }
    except Exception:
        record["error"] = traceback.format_exc()
    return record


if __name__ == "__main__":
    torch_npu.npu.set_device(0)
    with Path(sys.argv[1]).open("w", encoding="utf-8") as report:
        for name in sys.argv[2:] or MODELS:
            report.write(json.dumps(judge(name)) + "\n")
            report.flush()
