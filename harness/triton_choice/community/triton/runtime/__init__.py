"""Launching and tuning."""

from . import autotuner, cache, driver, errors, jit

__all__ = ["autotuner", "cache", "driver", "errors", "jit"]
