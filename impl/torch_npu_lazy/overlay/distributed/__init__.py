"""The NPU's strategies for DTensor come when DTensor does, or when somebody asks for them: DTensor brings sympy."""

from __future__ import annotations

from typing import Any

from torch_npu_lazy.core.promise import Promise, lazily
from torch_npu_lazy.core.trigger import when_imported

if isinstance(globals().get("tensor"), Promise):
    del globals()["tensor"]
lazily(globals(), {"tensor": "torch_npu.distributed.tensor", "run": "torch_npu.distributed.run"})


def _register_strategies(module: Any) -> None:
    del module
    __import__("torch_npu.distributed.tensor")


when_imported("torch.distributed.tensor", _register_strategies, again=_register_strategies)
