"""A package that has two names has one set of modules below it: importing one by the other name gives the same object.

Without it Python finds the file by the second name, too, and executes it again.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

from torch_npu_lazy.wheel.finder import finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


def alias(name: str, real: str) -> None:
    """Have `import name.x` give the module `real.x`, at any depth. `name` itself gets into sys.modules by other means.
    Safe to repeat."""
    entry = _Alias(name, real)
    if entry not in sys.meta_path:
        # Behind the one that must be asked first.
        finder.seat()
        sys.meta_path.insert(sys.meta_path.index(finder) + 1, entry)  # type: ignore[arg-type]


class _Alias:
    """The entry in sys.meta_path, and the loader of what is found through it."""

    def __init__(self, name: str, real: str) -> None:
        self._name, self._real = name, real

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alias) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._name, self._real))

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if not name.startswith(self._name + "."):
            return None
        from importlib.util import find_spec

        real = find_spec(self._real_name(name))
        if real is None:
            return None
        spec = ModuleSpec(name, self, origin=real.origin)  # type: ignore[arg-type]
        spec.submodule_search_locations = real.submodule_search_locations
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary empty module, which is gone as soon as it has been executed."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the real module in its place. Raises what its import raises."""
        from importlib import import_module

        sys.modules[module.__name__] = import_module(self._real_name(module.__name__))

    def _real_name(self, name: str) -> str:
        return self._real + name[len(self._name) :]
