"""Many small checks of triton.language in few kernels: a group is one generated kernel, each of its outputs a case.

A group that is refused is compiled again output by output, so that each case has an outcome of its own.
"""

from __future__ import annotations

import importlib.util
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import language_device as device
import torch
from torch import Tensor

# Relative and absolute, of one rounded operation; integers and bool are exact.
TOLERANCE = {
    torch.float32: (2e-6, 1e-6),
    torch.float16: (1e-3, 1e-4),
    torch.bfloat16: (8e-3, 1e-3),
    torch.float64: (1e-12, 1e-12),
}
EXACT = (0.0, 0.0)
_HEAD = """\
import triton
import triton.language as tl
from triton.language.extra.cann import extension, libdevice
from language_helpers import *


"""


class Output(NamedTuple):
    """What the kernel must store: an expression over the inputs' names, and what it must be equal to."""

    expression: str
    expected: Tensor
    tolerance: tuple[float, float] | None = None


@dataclass
class Group:
    """One kernel: loads each input whole under its name, runs the body, stores each output's expression."""

    name: str
    inputs: dict[str, Tensor]
    outputs: dict[str, Output]
    body: str = ""
    scalars: dict[str, device.Scalar] = field(default_factory=dict)


@dataclass
class Single:
    """A check that launches by itself."""

    name: str
    check: Callable[[], None]


Case = Group | Single
_directory = tempfile.mkdtemp(prefix="simnpu-language-")
_count = 0


def jit(source: str, name: str = "kernel") -> Any:
    """The kernel of that name in Python source that needs no imports of its own."""
    global _count  # noqa: PLW0603
    _count += 1
    path = Path(_directory, f"generated_{_count}.py")
    path.write_text(_HEAD + source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def at(shape: tuple[int, ...] | torch.Size) -> str:
    """Triton's offsets of all elements of a contiguous tensor."""
    terms, stride = [], 1
    for dimension in reversed(range(len(shape))):
        others = ", ".join(":" if d == dimension else "None" for d in range(len(shape)))
        terms.append(
            f"tl.arange(0, {shape[dimension]})"
            + (f"[{others}]" if len(shape) > 1 else "")
            + (f" * {stride}" if stride > 1 else "")
        )
        stride *= shape[dimension]
    return " + ".join(terms)


def place(pointer: str, shape: tuple[int, ...] | torch.Size) -> str:
    return f"{pointer} + {at(shape)}" if shape else pointer


def run_group(group: Group, names: list[str]) -> dict[str, Tensor]:
    """Compiles and runs the group for these of its outputs. Raises Refused."""
    outputs = [group.outputs[name] for name in names]
    parameters = (
        [f"{name}_ptr" for name in group.inputs] + list(group.scalars) + [f"out{k}_ptr" for k in range(len(outputs))]
    )
    lines = [f"    {name} = tl.load({place(name + '_ptr', tensor.shape)})" for name, tensor in group.inputs.items()]
    lines += [f"    {line}" for line in group.body.splitlines()]
    for k, output in enumerate(outputs):
        lines.append(f"    tl.store({place(f'out{k}_ptr', output.expected.shape)}, {output.expression})")
    source = f"@triton.jit\ndef kernel({', '.join(parameters)}):\n" + "\n".join(lines) + "\n"
    results = [garbage(output.expected) for output in outputs]
    device.run(jit(source), *(t.clone() for t in group.inputs.values()), *group.scalars.values(), *results)
    return dict(zip(names, results, strict=True))


def garbage(like: Tensor) -> Tensor:
    """A tensor of that kind with a pattern that no result has by accident."""
    return (
        torch.full((max(like.nbytes, 1),), 0x5A, dtype=torch.uint8)[: like.nbytes].view(like.dtype).reshape(like.shape)
    )


def compare(actual: Tensor, expected: Tensor, tolerance: tuple[float, float] | None = None) -> None:
    rtol, atol = tolerance if tolerance is not None else TOLERANCE.get(expected.dtype, EXACT)
    if expected.dtype == torch.bool:
        actual, expected = actual.view(torch.uint8), expected.view(torch.uint8)
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True)


class Result(NamedTuple):
    name: str
    outcome: str  # passed, failed, or who refused
    text: str


def results_of(case: Case) -> Iterator[Result]:
    if isinstance(case, Single):
        yield _result(case.name, case.check)
        return
    names = list(case.outputs)
    try:
        done = run_group(case, names)
    except Exception:
        for name in names:
            yield _result(f"{case.name}/{name}", lambda name=name: _one(case, name, run_group(case, [name])))
        return
    for name in names:
        yield _result(f"{case.name}/{name}", lambda name=name: _one(case, name, done))


def _one(group: Group, name: str, done: dict[str, Tensor]) -> None:
    compare(done[name], group.outputs[name].expected, group.outputs[name].tolerance)


def _result(name: str, check: Callable[[], None]) -> Result:
    try:
        check()
    except device.Refused as refused:
        return Result(name, refused.by, refused.text)
    except Exception:
        return Result(name, "failed", traceback.format_exc())
    return Result(name, "passed", "")
