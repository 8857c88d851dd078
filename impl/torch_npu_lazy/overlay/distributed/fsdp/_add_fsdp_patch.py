"""What fully_shard leaves out when activation checkpointing repeats a forward pass for the backward pass, and only
then: every other forward pass ends with sharded parameters and keeps its prefetching.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch_npu.distributed.fsdp._add_fsdp_patch as this
from torch.distributed.fsdp._fully_shard import _fsdp_collectives, _fsdp_param_group
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState
from torch_npu_lazy.core.layers import has_layer

_apply_to_wheel = this._apply_fsdp_enhance_patch


def _repeats() -> bool:
    """Whether the forward pass under way is part of a backward pass. A teacher that a hook calls there is not."""
    return torch._C._current_graph_task_id() != -1 and torch.is_grad_enabled()


def _patched_post_forward(original_post_forward: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the parameters gathered after a repeated forward pass: its backward pass needs them next."""

    @functools.wraps(original_post_forward)
    def post_forward(self: Any, module: Any, args: Any, out: Any) -> Any:
        if getattr(self, "_skip_post_forward", False) and _repeats():
            return out
        result = original_post_forward(self, module, args, out)
        self._skip_post_forward = True
        return result

    return post_forward


def _patched_fsdp_state_post_forward(original_post_forward: Callable[..., Any]) -> Callable[..., Any]:
    """Nothing here: see `_pre_forward_of`."""
    return original_post_forward


def _pre_forward_of(original: Callable[..., Any]) -> Callable[..., Any]:
    """Without the user's forward prefetching in a repeated forward pass, which runs in the order of the backward pass.
    The wheel takes the list away after each forward pass and gives it back in the backward pass; evaluations have
    none."""

    @functools.wraps(original)
    def pre_forward(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        if not _repeats() or hasattr(module, "skip_custom_post_forward") or not self._fsdp_param_group:
            return original(self, module, *args, **kwargs)
        prefetched, self._states_to_forward_prefetch = self._states_to_forward_prefetch, []
        try:
            return original(self, module, *args, **kwargs)
        finally:
            self._states_to_forward_prefetch = prefetched

    return pre_forward


_PLACES: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (FSDPParamGroup, "__init__", this._patched_fsdp_param_group_init),
    (FSDPParamGroup, "_wait_all_gather_streams_on_event", this._patched_wait_all_gather_streams_on_event),
    (FSDPParamGroup, "post_forward", _patched_post_forward),
    (FSDPParamGroup, "post_backward", this._patched_post_backward),
    (_fsdp_collectives, "foreach_reduce", this._patched_foreach_reduce),
    (_fsdp_param_group, "foreach_reduce", this._patched_foreach_reduce),
    (_fsdp_collectives.DefaultAllGather, "allocate", this._patched_all_gather_allocate),
    (_fsdp_collectives.DefaultReduceScatter, "allocate", this._patched_reduce_scatter_allocate),
    (FSDPState, "_pre_forward", _pre_forward_of),
)
"""What is patched, and by what."""


def _apply_fsdp_enhance_patch() -> None:
    """The wheel's patches, and that of the prefetching, each where it is not in place yet: a reload of this module, or
    a second copy, finds those of the first."""
    in_place = [
        (owner, name, getattr(owner, name)) for owner, name, patch in _PLACES if has_layer(getattr(owner, name), patch)
    ]
    if len(in_place) == len(_PLACES):
        return
    this._FSDP_ENHANCE_PATCH_APPLIED = False
    try:
        _apply_to_wheel()
        FSDPState._pre_forward = _pre_forward_of(FSDPState._pre_forward)
    finally:
        for owner, name, patched in in_place:
            setattr(owner, name, patched)
