"""Expressions drawn at random, over float32 and int32."""

from __future__ import annotations

import random

import torch
from language_cases import Case, Group, Output
from torch import Tensor

CASES: list[Case] = []


class Drawn:
    """A program of random statements over float32 and int32 tensors, in Triton's words and in torch's at once."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        self.inputs = {f"x{k}": torch.randn(64, generator=generator) for k in range(3)}
        self.inputs |= {f"n{k}": torch.randint(-50, 50, (64,), generator=generator).int() for k in range(3)}
        self.values: dict[str, Tensor] = dict(self.inputs)
        self.lines: list[str] = []
        for k in range(14):
            self.add(f"t{k}")

    def pick(self, dtype: torch.dtype) -> str:
        return self.random.choice([name for name, value in self.values.items() if value.dtype == dtype])

    def add(self, name: str) -> None:
        a, b, c = (self.pick(torch.float32) for _ in range(3))
        m, n = self.pick(torch.int32), self.pick(torch.int32)
        x, y, z, i, j = (self.values[key] for key in (a, b, c, m, n))
        safe = j | 1
        choices = [
            (f"{a} + {b}", lambda: x + y),
            (f"{a} - {b} * {c}", lambda: x - y * z),
            (f"tl.where({a} > {b}, {b}, {c})", lambda: torch.where(x > y, y, z)),
            (f"tl.minimum(tl.abs({a}), 4.0)", lambda: x.abs().clamp(max=4)),
            (f"tl.maximum({a}, {b}) / (tl.abs({c}) + 1.0)", lambda: torch.maximum(x, y) / (z.abs() + 1)),
            (f"tl.sqrt(tl.abs({a}))", lambda: x.abs().sqrt()),
            (f"{a} - tl.max({b}, 0)", lambda: x - y.max()),
            (f"{a} * 0.5 + {m}.to(tl.float32)", lambda: x * 0.5 + i.float()),
            (f"tl.flip({a}, 0)", lambda: x.flip(0)),
            (f"tl.reshape(tl.trans(tl.reshape({a}, (8, 8))), (64,))", lambda: x.view(8, 8).T.reshape(64)),
            (f"tl.sort({a})", lambda: x.sort()[0]),
            (f"{m} + {n} * 3", lambda: i + j * 3),
            (f"({m} ^ {n}) & 1023", lambda: (i ^ j) & 1023),
            (f"{m} // ({n} | 1)", lambda: torch.div(i, safe, rounding_mode="trunc")),
            (f"{m} % ({n} | 1)", lambda: torch.fmod(i, safe)),
            (f"({m} << 2) - ({n} >> 3)", lambda: (i << 2) - (j >> 3)),
            (f"tl.where({a} < 0.5, {m}, -{n})", lambda: torch.where(x < 0.5, i, -j)),
            (f"tl.clamp({a}, -100.0, 100.0).to(tl.int32)", lambda: x.clamp(-100, 100).int()),
            (f"tl.cumsum({m} & 7, 0)", lambda: (i & 7).cumsum(0).int()),
            (f"{m} - tl.min({n}, 0)", lambda: i - j.min()),
            (f"tl.argmax({a}, 0) + {m}", lambda: x.argmax().int() + i),
            (f"tl.associative_scan({a}, 0, largest)", lambda: x.cummax(0)[0]),
            (f"tl.reduce({m}, 0, last_of) + {n}", lambda: i[-1] + j),
        ]
        text, value = self.random.choice(choices)
        self.lines.append(f"{name} = {text}")
        self.values[name] = value()

    def group(self, name: str) -> Group:
        drawn = {
            key: Output(key, value, (1e-5, 1e-5) if value.is_floating_point() else None)
            for key, value in self.values.items()
            if key.startswith("t")
        }
        return Group(name, self.inputs, drawn, "\n".join(self.lines))


CASES += [Drawn(seed).group(f"random program {seed}") for seed in range(24)]
