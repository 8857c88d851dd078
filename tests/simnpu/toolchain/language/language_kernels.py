"""What the checks that are whole programs share: numbers drawn by one generator, kernels from a text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import torch
from language_cases import Case, Single, jit
from torch import Tensor

GENERATOR = torch.Generator().manual_seed(3)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=GENERATOR).to(dtype)


def whole(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.randint(low, high, shape, generator=GENERATOR, dtype=torch.int64).to(dtype)


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


def registering(cases: list[Case]) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """A decorator that adds a function to the cases, under its name."""

    def single(check: Callable[[], None]) -> Callable[[], None]:
        cases.append(Single(check.__name__.replace("_", " "), check))
        return check

    return single


def kernel(parameters: str, body: str) -> Any:
    """A kernel with this text as its body, however far that is indented here."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return jit(f"@triton.jit\ndef kernel({parameters}):\n{lines}\n")
