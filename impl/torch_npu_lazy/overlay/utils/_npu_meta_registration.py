"""Shapes of NPU operators for fake and meta tensors, without Inductor: they are as much eager work's as the compiler's.
Only Inductor's own table of decompositions has to wait until there is one."""

from __future__ import annotations

from torch_npu_lazy.core.trigger import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class _Decomposition:
    """torch._inductor.decomposition as far as the patch uses it: what is written here is written there in time."""

    def __init__(self) -> None:
        self.decompositions: dict[Any, Any] = {}
        self.fast_random_decomps = self

    def cache_clear(self) -> None:
        """The last that the patch does with it."""
        when_imported("torch._inductor.decomposition", self._write, again=self._write)

    def _write(self, module: ModuleType) -> None:
        module.decompositions.update(self.decompositions)
        module.fast_random_decomps.cache_clear()


inductor_decompo = _Decomposition()
