"""Answers for named modules of the wheel otherwise than the files in it would, and for modules and metadata that it
lacks. Behind the finder of `core.trigger`, which thus watches and executes what comes from here like anything else.

A lookup holds the one lock that all lookups of a process share, so nothing is imported in one: another thread may be
importing that very thing, and be waiting to look something up itself.
"""

from __future__ import annotations

import sys

from torch_npu_lazy.core import trigger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class WheelFinder(trigger.Relay):
    """The entry in sys.meta_path; there is one, `finder`."""

    def __init__(self) -> None:
        super().__init__()
        self.rewrites: dict[str, Callable[[ModuleSpec], ModuleSpec]] = {}
        """By module, what makes another spec of the one that the others gave."""
        self.additions: dict[str, Callable[[str], ModuleSpec]] = {}
        """By module that the others do not know, what makes its spec."""
        self.announcements: list[Callable[[Any], Iterable[Any]]] = []
        """What adds distributions to those that importlib.metadata finds."""

    def seat(self) -> None:
        """See that only the trigger's finder is asked before this one. Adds, never removes, both in one go."""
        front: list[Any] = [trigger.finder, self]
        if sys.meta_path[:2] != front:
            sys.meta_path[:0] = front

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The others' answer rewritten, or an addition, for the named modules only."""
        rewrite, addition = self.rewrites.get(name), self.additions.get(name)
        if rewrite is None and addition is None:
            return None
        spec = self.ask(name, path, target)
        if spec is None:
            return addition(name) if addition is not None else None
        return spec if rewrite is None or spec.loader is None else rewrite(spec)

    def find_distributions(self, context: Any) -> Iterable[Any]:
        """As importlib.metadata asks each entry of sys.meta_path."""
        return [each for announce in self.announcements for each in announce(context)]


finder = WheelFinder()
