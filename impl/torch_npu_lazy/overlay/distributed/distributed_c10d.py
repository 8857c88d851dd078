"""Collectives that the NPU's package puts in place of torch's own."""

from __future__ import annotations

from typing import Any

import torch
import torch_npu.distributed.distributed_c10d as this
from torch.distributed.distributed_c10d import (
    ProcessGroup,
    _get_default_group,
    _rank_not_in_group,
    get_global_rank,
)

_gather_to_rank, _gather_object_to_rank = this._gather, this._gather_object


def _receiver(function: str, dst: int | None, group: ProcessGroup | None, group_dst: int | None) -> int:
    """The receiver's rank in the default group, which is all that the wheel takes."""
    if group_dst is not None and dst is not None:
        raise ValueError(f"{function}: give the receiver by dst or by group_dst, not by both")
    if group_dst is not None and not _rank_not_in_group(group):  # type: ignore[arg-type]
        return get_global_rank(group or _get_default_group(), group_dst)
    return 0 if dst is None else dst


def _gather(  # noqa: PLR0917 torch.distributed.gather has these
    tensor: torch.Tensor,
    gather_list: list[torch.Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """The wheel's gather, whose receiver can also be named by its rank in the group, as torch's can.

    Raises ValueError if both ranks are given.
    """
    return _gather_to_rank(tensor, gather_list, _receiver("gather", dst, group, group_dst), group, async_op)


def _gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """The same for objects."""
    _gather_object_to_rank(obj, object_gather_list, _receiver("gather_object", dst, group, group_dst), group)
