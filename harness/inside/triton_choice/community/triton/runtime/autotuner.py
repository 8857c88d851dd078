"""Tuning."""

from .errors import OutOfResources, PTXASError

__all__ = ["Autotuner", "Config", "Heuristics", "OutOfResources", "PTXASError"]


class Autotuner: ...


class Heuristics: ...


class Config:
    def __init__(self, kwargs, num_warps=4, num_stages=3):
        self.kwargs, self.num_warps, self.num_stages = kwargs, num_warps, num_stages
