"""torch._dynamo.optimize with backend "npu" prepares torchair before the model runs; everything else passes through."""

from __future__ import annotations

import functools
import sys

import torch
import torch_npu._compat.dynamo as this

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def compat_patch_dynamo_optimize() -> None:
    """Wrap torch._dynamo.optimize, once, wherever torch keeps it: a reload of torch._dynamo takes it from its home
    again, and pickle looks for it there. The wrapper shows torch's own name, home and signature."""
    if this.CURRENT_VERSION >= (2, 15):
        return
    import torch._dynamo.eval_frame as home

    if not hasattr(home.optimize, "_npu_backend_first"):
        home.optimize = _npu_backend_first(home.optimize)  # type: ignore[assignment]
    torch._dynamo.optimize = home.optimize


def _npu_backend_first(optimize: Any) -> Any:
    @functools.wraps(optimize)
    def first(*args: Any, **kwargs: Any) -> Any:
        backend = kwargs["backend"] if "backend" in kwargs else args[0] if args else None
        if isinstance(backend, torch._TorchCompileWrapper):
            backend = backend.compiler_name
        if isinstance(backend, str) and backend == "npu":
            sys.modules["torch_npu.dynamo"]._get_global_npu_backend(backend)
        return optimize(*args, **kwargs)

    first._npu_backend_first = True  # type: ignore[attr-defined]
    return first
