"""One counter of marked steps, wherever it is looked for."""

from torch_npu.npu._graph_tree_state import MarkStepBox, mark_step_begin  # noqa: F401
