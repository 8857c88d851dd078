"""torch._dynamo.decorators.forbid_in_graph without Dynamo, which looks for the mark alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def forbid_in_graph(fn: Any) -> Any:
    """Mark a function, or each of a list or tuple of functions, as one that must not be traced. Raises AssertionError
    for anything else."""
    if isinstance(fn, (list, tuple)):
        return [forbid_in_graph(each) for each in fn]
    if not callable(fn):
        raise AssertionError("forbid_in_graph applies only to callables")
    fn._dynamo_forbidden = True  # type: ignore[attr-defined]
    return fn
