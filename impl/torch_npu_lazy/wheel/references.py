"""Names that load later: a lazy reference stands for one until it is used, a module gives one when it is asked.

A lazy reference loads nothing until it is called, or an attribute of it is read that is no special one, or somebody
unwraps it. Nothing can be an instance of a class whose module is not loaded: isinstance says so without loading it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class LazyReference:
    """A name of a module that need not be loaded yet; with an empty name, the module itself.

    open: while it is, it has no attributes, and what is assigned to it waits in `_assigned`. See `redirects`.
    """

    __slots__ = ("__weakref__", "_assigned", "_module", "_name")

    def __init__(self, module: str, name: str, *, open: bool = False) -> None:
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_assigned", {} if open else None)

    def _resolve(self) -> Any:
        """The real thing. Raises what importing its module raises, and AttributeError."""
        __import__(self._module)
        return self._in(sys.modules[self._module])

    def _in(self, module: Any) -> Any:
        return getattr(module, self._name) if self._name else module

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
        return (LazyReference, (self._module, self._name))

    def __repr__(self) -> str:
        return f"<lazy reference to {self._module}.{self._name}>"


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
            value = LazyReference(module, attribute)._resolve()
        else:
            value = source()
        namespace[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*(list_names() if list_names is not None else namespace), *names})

    namespace["__getattr__"], namespace["__dir__"] = __getattr__, __dir__
