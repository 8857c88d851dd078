"""What NPU Inductor makes of single operators."""

from __future__ import annotations

import functools

import torch
import torch_npu._inductor.lowering as this

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_wheels_lowerings: Callable[[], None] = this._register_npu_inductor_fallbacks


def _register_npu_inductor_fallbacks() -> None:
    _wheels_lowerings()
    # An Ascend950 has an operator of its own for this.
    if not this.is_ascend950:
        operator = torch.ops.aten.native_layer_norm.default
        this.lowerings[operator] = _with_statistics_in_float32(this.lowerings[operator])


def _with_statistics_in_float32(layer_norm: Callable[..., Any]) -> Callable[..., Any]:
    """Backward graphs read mean and deviation of half precision numbers as float32, as the operator gives them. The
    wheel's lowering gives the input's type."""

    @functools.wraps(layer_norm)
    def lowered(x: Any, *args: Any, **kwargs: Any) -> Any:
        dtype = x.get_dtype()
        if dtype not in (torch.float16, torch.bfloat16):
            return layer_norm(x, *args, **kwargs)
        result, mean, deviation = layer_norm(this.to_dtype(x, torch.float32), *args, **kwargs)
        return this.to_dtype(result, dtype), mean, deviation

    return lowered
