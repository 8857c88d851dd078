"""A capture whose end is refused leaves nothing behind: the wheel's allocator would count it as under way for ever, and
refuse to empty its cache, with which every capture begins."""

from __future__ import annotations

import functools
from contextlib import suppress

import torch_npu
import torch_npu.npu.graphs as this

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _with_pool(enter: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        self._given = self.pool
        # A graph that has not been captured does not tell its pool.
        self.pool = self.pool or (this.graph_pool_handle(),)
        return enter(self)

    return __enter__


def _gives_up(leave: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(leave)
    def __exit__(self: Any, *error: object) -> Any:
        (pool,), self.pool = self.pool, self._given
        try:
            return leave(self, *error)
        except BaseException:
            device = torch_npu.npu.current_device()
            # Refused where the capture's end had come that far by itself.
            with suppress(RuntimeError):
                torch_npu._C._npu_endAllocateCurrentStreamToPool(device, pool)
                torch_npu._C._npu_releasePool(device, pool)
            raise

    return __exit__


this.graph.__enter__, this.graph.__exit__ = _with_pool(this.graph.__enter__), _gives_up(this.graph.__exit__)
