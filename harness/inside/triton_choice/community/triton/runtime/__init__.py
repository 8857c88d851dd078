"""Launching and tuning."""

from . import autotuner, cache, errors, jit
from .driver import driver

__all__ = ["autotuner", "cache", "driver", "errors", "jit"]
