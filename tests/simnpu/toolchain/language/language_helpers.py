"""Triton functions that generated kernels call."""

from __future__ import annotations

import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def multiply_add(a, b):
    return a * b + a + b


@triton.jit
def first_of(a, b):  # noqa: ARG001 - the interface of a combiner
    """Associative, not commutative."""
    return a


@triton.jit
def last_of(a, b):  # noqa: ARG001
    return b


@triton.jit
def affine(m1, c1, m2, c2):
    """x*m1 + c1 and then x*m2 + c2: associative, not commutative, two operands."""
    return m1 * m2, c1 * m2 + c2


@triton.jit
def welford(mean1, m1, n1, mean2, m2, n2):  # noqa: PLR0917 - the interface of a combiner
    n = n1 + n2
    delta = mean2 - mean1
    return mean1 + delta * (n2 / n), m1 + m2 + delta * delta * (n1 * n2 / n), n


@triton.jit
def both(a, b):
    return a & b


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def largest(a, b):
    return tl.maximum(a, b)


@triton.jit
def smallest(a, b):
    return tl.minimum(a, b)


@triton.jit
def added(a, b):
    return a + b


@triton.jit
def twice_and_half(a):
    return a * 2, a * 0.5


@triton.jit(noinline=True)
def far(a):
    return a * 3 + 1
