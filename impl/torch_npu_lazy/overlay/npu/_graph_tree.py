"""A name that releases without lazy initialisation have here."""

from torch_npu.npu._graph_tree_state import mark_step_begin  # noqa: F401
