"""Wrappers that warn of old names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch_npu._init.patches.warning_patches as this
from torch_npu_lazy.wheel.references import LazyReference

if TYPE_CHECKING:
    from collections.abc import Callable

_wrap = this._wrap_torch_patch_warning_func


def _wrap_torch_patch_warning_func(func: Any) -> Callable[..., Any]:
    """The wheel's wrapper; what it wraps may be a lazy reference, and then is described without loading it."""
    wrapper = _wrap(func)
    if isinstance(func, LazyReference):
        wrapper.__module__ = func._module
        wrapper.__doc__ = f"See {func._module}.{func._name}."
    return wrapper
