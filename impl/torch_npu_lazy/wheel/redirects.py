"""Import statements of a module's body that are answered otherwise than written: from another module, or by lazy
references to names that are needed only later. The body gets an `__import__` of its own, in its builtins.

Invariants
- Only statements of the body itself are concerned. What functions import when they are called is imported as written,
  and nothing outside of the module notices.
- While the body runs a lazy reference has no attributes, and what is assigned to it is done to the real thing later.
- Once the module of a lazy reference has been imported, by whomever, the real thing is in the namespace in its place.
"""

from __future__ import annotations

import builtins
import sys
from types import FunctionType

from torch_npu_lazy.core.trigger import when_imported
from torch_npu_lazy.wheel.references import LazyReference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, ModuleType
    from typing import Any

    from torch_npu_lazy.profiles import Answer


def execute(body: CodeType | Callable[[], object], namespace: dict[str, Any], answers: Mapping[str, Answer]) -> None:
    """Execute a body in its namespace with other answers to some of its import statements.

    body: its code, or what executes it where a loader gives no code. answers: by the absolute name of the module that
    a statement imports, what it gets (see `profiles.LATER`). A lazy reference is made only to what is not loaded.
    Raises what the body raises.
    """
    given: dict[str, _References] = {}

    def importer(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        answer = None if level else answers.get(name)
        if isinstance(answer, str):
            name = answer
        elif answer is not None and fromlist:
            loads = [f"{name}.{each}" for each in answer] or [name]
            if name in given or not all(each in sys.modules for each in loads):
                return given.setdefault(name, _References(name, answer))
        return builtins.__import__(name, globals, locals, fromlist, level)

    run(body, namespace, importer)
    for references in given.values():
        _settle_when_imported(references, namespace)


def run(
    body: CodeType | Callable[[], object],
    namespace: dict[str, Any],
    importer: Callable[..., Any],
    *,
    functions: bool = False,
) -> None:
    """Execute a body (its code, or what executes it) in its namespace with `importer` for its `__import__`.

    functions: the module's functions import by it, too, while the body runs, as they do where there is no code. They
    keep that dictionary of builtins, with Python's own `__import__` in it from the end of the body on. Raises what the
    body raises.
    """
    own = {**vars(builtins), "__import__": importer}
    namespace["__builtins__"] = own
    execute_it = body
    if not callable(execute_it):
        # A function takes its builtins from the namespace when it is made, and this one is the body: code that is no
        # function's has the namespace for its locals.
        execute_it = FunctionType(execute_it, namespace)
        if not functions:
            namespace["__builtins__"] = vars(builtins)
    try:
        execute_it()
    finally:
        own["__import__"] = builtins.__import__
        namespace["__builtins__"] = vars(builtins)


class _References:
    """What an import statement gets instead of a module."""

    def __init__(self, module: str, names: tuple[str, ...]) -> None:
        self._module, self._names = module, names
        self.given: dict[str, LazyReference] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._names and name not in self._names:
            return getattr(__import__(self._module, fromlist=[name]), name)
        if name not in self.given:
            module = f"{self._module}.{name}"
            self.given[name] = (
                LazyReference(module, "") if self._names else LazyReference(self._module, name, open=True)
            )
        return self.given[name]


def _settle_when_imported(references: _References, namespace: dict[str, Any]) -> None:
    """Put the real things in the references' place when there are any."""
    by_module: dict[str, list[LazyReference]] = {}
    for reference in references.given.values():
        by_module.setdefault(reference._module, []).append(reference)
    for name, group in by_module.items():
        assigned = [(reference, dict(reference._assigned or {})) for reference in group]
        for reference in group:
            object.__setattr__(reference, "_assigned", None)

        def settle(module: ModuleType, assigned: Any = assigned, group: list[LazyReference] = group) -> None:
            for owner, values in assigned:
                for attribute, value in values.items():
                    _assign(owner._in(module), attribute, value)
            for key, value in list(namespace.items()):
                if any(value is reference for reference in group):
                    namespace[key] = value._in(module)

        when_imported(name, settle)


def _assign(owner: Any, attribute: str, value: object) -> None:
    setattr(owner, attribute, value)
    if isinstance(value, LazyReference):

        def settle(module: ModuleType) -> None:
            if vars(owner).get(attribute) is value:
                setattr(owner, attribute, value._in(module))

        when_imported(value._module, settle)
