"""What a code generator changes in Inductor is taken back before the next one is loaded: decompositions, too, where the
wheel takes back lowerings and a generator that comes a second time finds its own registrations in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch_npu._inductor.lowering_patch as this
from torch._decomp import global_decomposition_table
from torch._inductor.decomposition import decompositions

_Changes = list[dict[Any, tuple[Any, Any]]]

_restore_lowerings: Callable[[], None] = this.restore_inductor_baseline
_tables: tuple[dict[Any, Any], ...] = (decompositions, *global_decomposition_table.values())
_before: list[dict[Any, Any]] | None = None
_in_force: _Changes | None = None
_by_generator: dict[str, _Changes] = {}


def restore_inductor_baseline() -> None:
    """The wheel's, and the decompositions. A generator's load begins with it."""
    global _before  # noqa: PLW0603
    _restore_lowerings()
    # One that failed has not come to its end.
    note_decompositions(None)
    take_decompositions_back()
    _before = [dict(table) for table in _tables]


def note_decompositions(generator: str | None) -> None:
    """A load has ended; generator: what has been loaded, if that has succeeded. What its modules did when they were
    imported is done again, since they are not imported again."""
    global _before, _in_force  # noqa: PLW0603
    if _before is None:
        return
    for table, changes in zip(_tables, _by_generator.get(generator or "", ()), strict=False):
        for operator, (_, changed) in changes.items():
            _put(table, operator, changed)
    _in_force = [
        {
            operator: (before.get(operator), table.get(operator))
            for operator in {**before, **table}
            if before.get(operator) is not table.get(operator)
        }
        for before, table in zip(_before, _tables, strict=True)
    ]
    _before = None
    if generator is not None:
        _by_generator[generator] = _in_force


def take_decompositions_back() -> None:
    """Undo what the last load has changed and nobody since."""
    global _in_force  # noqa: PLW0603
    for table, changes in zip(_tables, _in_force or (), strict=False):
        for operator, (before, changed) in changes.items():
            if table.get(operator) is changed:
                _put(table, operator, before)
    _in_force = None


def _put(table: dict[Any, Any], operator: Any, decomposition: Any) -> None:
    if decomposition is None:
        table.pop(operator, None)
    else:
        table[operator] = decomposition
