"""Import statements of a module's body that are answered otherwise than written: from another module, or by a promise
of a name that is needed only later.

Invariants
- Only statements of the body itself are concerned. What functions import when they are called is imported as written,
  and nothing outside of the module notices.
- A promise loads nothing until it is called, or an attribute of it is read that is no special one, or somebody unwraps
  it. While the body runs it has no attributes, and what is assigned to it is done to the real thing later.
- Nothing can be an instance of a class whose module is not loaded: isinstance says so without loading it.
- Once the promised module has been imported, by whomever, the real thing is in the namespace in the promise's place.
"""

from __future__ import annotations

import sys

from torch_npu_lazy.core.trigger import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import CodeType, ModuleType
    from typing import Any

    Answer = str | tuple[str, ...]

LATER: tuple[str, ...] = ()
"""The answer to an import: all its names are promised. A tuple with names promises those only, which are modules; a
string is the module to import instead."""


class Promise:
    """A name of a module that need not be loaded yet; with an empty name, the module itself."""

    __slots__ = ("__weakref__", "_assigned", "_module", "_name")

    def __init__(self, module: str, name: str, *, open: bool = False) -> None:
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_assigned", {} if open else None)

    def _resolve(self) -> Any:
        """The real thing. Raises what importing its module raises, and AttributeError."""
        __import__(self._module)
        return _named(sys.modules[self._module], self._name)

    def _known(self) -> Any:
        """The real thing if its module is loaded, else None."""
        module = sys.modules.get(self._module)
        return getattr(module, self._name, None) if self._name else module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._resolve()(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        # So that it can stand for a method.
        from types import MethodType

        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, attribute: str) -> Any:
        special = attribute.startswith("__") and attribute.endswith("__")
        real = self._known()
        if real is None and attribute in ("__name__", "__qualname__"):
            return self._name or self._module
        if attribute == "__wrapped__" and self._name and self._assigned is None:
            # Where inspect and pydoc look for signature and source.
            return self._resolve()
        if real is None and (special or self._assigned is not None):
            raise AttributeError(
                f"{self._module}.{self._name} is not loaded yet: no attribute {attribute!r}", name=attribute, obj=self
            )
        return getattr(self._resolve() if real is None else real, attribute)

    def __setattr__(self, attribute: str, value: object) -> None:
        if self._assigned is None:
            setattr(self._resolve(), attribute, value)
        else:
            self._assigned[attribute] = value

    def __instancecheck__(self, instance: object) -> bool:
        real = self._known()
        return real is not None and isinstance(instance, real)

    def __subclasscheck__(self, subclass: type) -> bool:
        real = self._known()
        return real is not None and issubclass(subclass, real)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        del bases
        return (self._resolve(),)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Promise, (self._module, self._name))

    def __repr__(self) -> str:
        return f"<promise of {self._module}.{self._name}>"


class _Promising:
    """What an import statement gets instead of a module."""

    def __init__(self, module: str, names: tuple[str, ...]) -> None:
        self._module, self._names = module, names
        self.given: dict[str, Promise] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._names and name not in self._names:
            module = __import__(self._module, fromlist=[name])
            return getattr(module, name)
        promise = Promise(f"{self._module}.{name}", "") if self._names else Promise(self._module, name, open=True)
        return self.given.setdefault(name, promise)


def execute(code: CodeType, namespace: dict[str, Any], answers: Mapping[str, Answer]) -> None:
    """Execute a body in its namespace with other answers to some of its import statements.

    answers: by the absolute name of the module that a statement imports, what it gets (see `LATER`). What is loaded
    already is not promised. Raises what the body raises.
    """
    names: dict[str, str] = {}
    promising: dict[str, _Promising] = {}
    for module, answer in answers.items():
        if isinstance(answer, str):
            names[module] = answer
        elif not all(name in sys.modules for name in _loads(module, answer)):
            # Unique, since the same may be promised to several bodies at a time.
            names[module] = key = f"{namespace['__name__']} later {module}"
            promising[key] = sys.modules[key] = _Promising(module, answer)  # type: ignore[assignment]
    try:
        # The names of modules with a dot in them are used by nothing but the import statements of the body itself.
        exec(code.replace(co_names=tuple(names.get(name, name) for name in code.co_names)), namespace)
    finally:
        for key in promising:
            sys.modules.pop(key, None)
    for each in promising.values():
        _keep(each, namespace)


def _named(module: ModuleType, name: str) -> Any:
    return getattr(module, name) if name else module


def _loads(module: str, names: Iterable[str]) -> list[str]:
    return [f"{module}.{name}" for name in names] or [module]


def _keep(promising: _Promising, namespace: dict[str, Any]) -> None:
    """Put the real things in the promises' place when there are any."""
    by_module: dict[str, list[Promise]] = {}
    for promise in promising.given.values():
        by_module.setdefault(promise._module, []).append(promise)
    for name, promises in by_module.items():
        assigned = [(promise._name, dict(promise._assigned or {})) for promise in promises]
        for promise in promises:
            object.__setattr__(promise, "_assigned", None)

        def settle(
            module: ModuleType,
            assigned: list[tuple[str, dict[str, object]]] = assigned,
            promises: list[Promise] = promises,
        ) -> None:
            for owner, values in assigned:
                for attribute, value in values.items():
                    _assign(getattr(module, owner), attribute, value)
            for key, value in list(namespace.items()):
                if any(value is promise for promise in promises):
                    namespace[key] = _named(module, value._name)

        when_imported(name, settle)


def _assign(owner: Any, attribute: str, value: object) -> None:
    setattr(owner, attribute, value)
    if isinstance(value, Promise):

        def settle(module: ModuleType) -> None:
            if vars(owner).get(attribute) is value:
                setattr(owner, attribute, _named(module, value._name))

        when_imported(value._module, settle)


def lazily(namespace: dict[str, Any], names: Mapping[str, str | Callable[[], Any]]) -> None:
    """Have a module give some names at their first use, and list them before (PEP 562).

    names: by the name, "module:attribute", "module" for a module itself, or a function that makes the value. What the
    module's own `__getattr__` and `__dir__` answer is kept.
    """
    home = namespace["__name__"]
    get: Callable[[str], Any] | None = namespace.get("__getattr__")
    list_names: Callable[[], list[str]] | None = namespace.get("__dir__")

    def __getattr__(name: str) -> Any:
        if name not in names:
            if get is not None:
                return get(name)
            raise AttributeError(f"module {home!r} has no attribute {name!r}", name=name, obj=sys.modules.get(home))
        source = names[name]
        if isinstance(source, str):
            module, _, attribute = source.partition(":")
            value = Promise(module, attribute)._resolve()
        else:
            value = source()
        namespace[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*(list_names() if list_names is not None else namespace), *names})

    namespace["__getattr__"], namespace["__dir__"] = __getattr__, __dir__
