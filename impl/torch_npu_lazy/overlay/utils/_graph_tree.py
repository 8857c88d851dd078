"""NPU graphs in place of CUDA's in Inductor, safe to repeat, with the backend that torch.compiler.reset() reaches."""

from __future__ import annotations

import torch_npu.utils._graph_tree as this
from torch_npu.dynamo import _npugraphs_backend_entrypoint, _register_npu_backend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def npugraph_mark_step_begin():
    """One counter with the marker that is there before, which loads no graph tree."""
    from torch_npu.npu._graph_tree_state import mark_step_begin

    mark_step_begin()


def _get_manager(*args: Any, **kwargs: Any) -> Any:
    from torch_npu.npu._graph_tree import get_manager

    return get_manager(*args, **kwargs)


def _reset() -> None:
    _npugraphs_backend_entrypoint.reset()


this.NpugraphsBackend.reset = staticmethod(_reset)


def _apply_npugraph_tree_methods() -> None:
    import torch._inductor.cudagraph_trees
    import torch._inductor.cudagraph_utils

    _register_npu_backend(_npugraphs_backend_entrypoint, "npugraphs")
    torch._inductor.compile_fx.cudagraphify = this.npugraphify
    torch._inductor.cudagraph_utils.check_multiple_devices_or_any_cpu_nodes = (
        this.check_multiple_devices_or_any_cpu_nodes
    )
    torch._inductor.cudagraph_trees.get_manager = _get_manager
    torch.compiler.npugraph_mark_step_begin = npugraph_mark_step_begin  # type: ignore[attr-defined]
