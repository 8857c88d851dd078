"""Modules below torch's packages that exist as attributes after `import torch_npu` with the wheel alone, because it has
loaded them: here they load when they are asked for. Programs say `torch.distributed.tensor.DTensor` without an import.

Invariants
- A package's own `__getattr__` answers what it answered before, and what is really there is never asked for here.
- dir() of a package does not list them: who only looks loads nothing.
- A file that torch.load reads may name what these modules would have allowed; they are loaded for it, and nothing else.
"""

from __future__ import annotations

import functools
import sys
from importlib import import_module

from torch_npu_lazy.core.trigger import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType
    from typing import Any


def answer(names: Mapping[str, str], allowing: Iterable[str]) -> None:
    """Have packages of torch answer for modules below them. names: by package, separated by spaces. allowing: modules
    whose import allows torch.load to make what a file names of the package above them."""
    for package, below in names.items():

        def modules_below(package: ModuleType, names: frozenset[str] = frozenset(below.split())) -> None:
            _put(names, package)

        when_imported(package, modules_below, again=modules_below)

    def allowed_in_files(unpickler: ModuleType) -> None:
        _allow(tuple(allowing), unpickler)

    when_imported("torch._weights_only_unpickler", allowed_in_files, again=allowed_in_files)


def _put(names: frozenset[str], package: ModuleType) -> None:
    own: Callable[[str], Any] | None = vars(package).get("__getattr__")

    def __getattr__(name: str) -> object:
        if name in names:
            return import_module(f"{package.__name__}.{name}")
        if own is not None:
            return own(name)
        raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")

    vars(package)["__getattr__"] = __getattr__


def _allow(modules: tuple[str, ...], unpickler: Any) -> None:
    real: Callable[[], dict[str, Any]] = unpickler._get_user_allowed_globals

    class Allowed(dict):  # type: ignore[type-arg]
        """What is allowed, once those modules are loaded beside or in which a name lies."""

        def __contains__(self, path: object) -> bool:
            if super().__contains__(path):
                return True
            for module in modules:
                if str(path).startswith(f"{module.rpartition('.')[0]}.") and module not in sys.modules:
                    import_module(module)
                    self.update(real())
            return super().__contains__(path)

    @functools.wraps(real)
    def allowed() -> dict[str, Any]:
        return Allowed(real())

    unpickler._get_user_allowed_globals = allowed
