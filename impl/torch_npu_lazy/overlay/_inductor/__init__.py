"""NPU Inductor, loaded with one code generator after the other, where the wheel's body knows one per process and cannot
be executed without Triton: as in later releases the package can be imported then, and says what is missing."""

from __future__ import annotations

import functools
import os
import warnings

import torch
import torch_npu._inductor as this
from torch_npu.utils._dynamo import patch_has_triton

from torch_npu_lazy.core import events
from torch_npu_lazy.core.layers import wrap
from torch_npu_lazy.core.trigger import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def _say_what_is_missing(init_wrapper_code: Callable[..., None]) -> Callable[..., None]:
    """Have Inductor's graphs name the package to install, in the error that the caller gets. The wheel does in a
    warning, once in a process; torch says that the device is not supported."""

    @functools.wraps(init_wrapper_code)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return init_wrapper_code(self, *args, **kwargs)
        except AssertionError as error:
            from torch._inductor.codegen.common import get_wrapper_codegen_for_device

            if self.device_type != "npu" or get_wrapper_codegen_for_device("npu") is not None:
                raise
            raise RuntimeError(
                "Inductor cannot compile for the NPU: its code generator needs triton-ascend, which is not installed; "
                "community Triton, which shares its import name, knows no NPU. Install the package triton-ascend in "
                'its place, or choose another code generator with options={"npu_backend": ...}'
            ) from error

    return checked


def _pass_over_torchs_own_check(make_fallback: Callable[..., Any]) -> Callable[..., Any]:
    """Have Inductor's graphs leave an operator to the device where CI is set, too. There torch refuses it if it could
    take the operator apart, for its own developers' sake; NPU Inductor has chosen not to."""

    @functools.wraps(make_fallback)
    def unchecked(*args: Any, **kwargs: Any) -> Any:
        return make_fallback(*args, **{**kwargs, "warn": False})

    return unchecked


def _patch_graphs(graph: ModuleType) -> None:
    wrap(graph.GraphLowering, "init_wrapper_code", _say_what_is_missing)
    wrap(graph, "make_fallback", _pass_over_torchs_own_check)


when_imported("torch._inductor.graph", _patch_graphs, again=_patch_graphs)

_wheel: Any = this.__spec__.loader_state

if _wheel is not None:
    _loaded: set[str] = set()

    def _load_backend() -> None:
        """Load what the environment names. Raises ImportError if that needs a package that is not here."""
        from torch.utils._triton import has_triton_package

        backend = os.environ.get("TORCHINDUCTOR_NPU_BACKEND", "default")
        # All others are answered by the generator for Triton.
        kind = "mlir" if backend == "mlir" else "triton"
        if kind in _loaded:
            return
        if kind == "triton" and not has_triton_package():
            warnings.warn(
                "NPU Inductor has no code generator: triton-ascend is not installed. Install it to compile with "
                "Inductor.",
                stacklevel=2,
            )
            return
        if kind == "mlir" and "triton" in _loaded:
            torch._inductor.lowering.make_fallback = this.ori_make_fallback  # type: ignore[attr-defined]
        _wheel.exec_module(this)
        _loaded.add(kind)
        # The body has put one of its own in place.
        patch_has_triton()
        events.record("load", f"{__name__} for {kind}")

    _load_backend()
else:
    from torch._inductor.decomposition import fast_random_decomps
    from torch_npu._inductor.lowering_patch import note_decompositions

    _load_wheels = this._load_backend

    def _load_backend() -> None:
        """Load what the environment names in place of what is loaded. Raises what that raises."""
        loaded: str | None = None
        try:
            _load_wheels()
            loaded = this._get_backend()
        finally:
            note_decompositions(loaded)
            fast_random_decomps.cache_clear()

    # The body has loaded one.
    note_decompositions(this._get_backend())
