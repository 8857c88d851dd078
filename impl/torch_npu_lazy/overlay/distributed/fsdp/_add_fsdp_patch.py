"""What fully_shard leaves out when activation checkpointing repeats a forward pass for the backward pass, and only
then: every other forward pass ends with sharded parameters and keeps its prefetching.
"""

from __future__ import annotations

import functools

import torch
import torch_npu.distributed.fsdp._add_fsdp_patch as this
from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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


def _apply_fsdp_enhance_patch() -> None:
    """The wheel's patches, and that of the prefetching."""
    if not this._FSDP_ENHANCE_PATCH_APPLIED:
        _apply_to_wheel()
        FSDPState._pre_forward = _pre_forward_of(FSDPState._pre_forward)
