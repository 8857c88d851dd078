"""The language: the few names that torch asks for when it is loaded."""

from . import core, extra, math, standard
from .core import constexpr, dtype, tensor

__all__ = ["constexpr", "core", "dtype", "extra", "math", "standard", "tensor"]
