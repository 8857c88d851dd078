"""The NPU's mathematical functions: those of triton.language.extra.ascend, and what NPU Inductor names beyond them.

Looked up when used: this is imported before triton-ascend has completed its own.
"""

from __future__ import annotations

from typing import Any

from triton.language import core, math  # pyright: ignore[reportMissingImports]
from triton.runtime.jit import jit  # pyright: ignore[reportMissingImports]

from ..ascend import libdevice as ascend  # pyright: ignore[reportMissingImports]


@jit
def erfcx(x):
    """exp(x*x) * erfc(x). The fit is good to 2e-7 of the value; rounding inside exp adds a few 1e-6 for large x."""
    # The Chebyshev fit of Press et al., Numerical Recipes: good for all sizes, where 1 - erf(x) would cancel.
    z = math.abs(x)
    t = 1.0 / (1.0 + 0.5 * z)
    p = t * 0.17087277 - 0.82215223
    p = p * t + 1.48851587
    p = p * t - 1.13520398
    p = p * t + 0.27886807
    p = p * t - 0.18628806
    p = p * t + 0.09678418
    p = p * t + 0.37409196
    p = p * t + 1.00002368
    positive = t * math.exp(p * t - 1.26551223)
    return core.where(x < 0, 2.0 * math.exp(z * z) - positive, positive)


@jit
def erfc(x):
    """1 - erf(x), as good as erfcx."""
    z = math.abs(x)
    scaled = math.exp(-z * z) * erfcx(z)
    return core.where(x < 0, 2.0 - scaled, scaled)


@jit
def llrint(x):
    """The nearest integer, the even one of two, as int64."""
    below = math.floor(x)
    rest = x - below
    up = (rest > 0.5) | ((rest == 0.5) & (below.to(core.int64) % 2 != 0))
    return below.to(core.int64) + up.to(core.int64)


@jit
def fast_tanhf(x):
    return ascend.tanh(x)


@jit
def fast_expf(x):
    return math.exp(x)


@jit
def mul_rn(x, y):
    return x * y


@jit
def fmod(x, y):
    """The remainder of a division truncated to zero, with the sign of x; exact while the quotient is below 2**24."""
    size, divisor = math.abs(x), math.abs(y)
    rest = math.fma(-math.floor(size / divisor), divisor, size)
    # The quotient was rounded before it was cut.
    rest = core.where(rest < 0, rest + divisor, rest)
    rest = core.where(rest >= divisor, rest - divisor, rest)
    return core.where(x < 0, -rest, rest)


def __getattr__(name: str) -> Any:
    if not name.startswith("__") and hasattr(ascend, name):
        return getattr(ascend, name)
    raise AttributeError(
        f"{__name__} has no {name}: this triton-ascend has no such function, so the simulated NPU cannot offer it"
    )
