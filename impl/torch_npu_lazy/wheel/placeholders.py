"""Modules that load later: a placeholder takes their place in sys.modules until then.

Invariants
- The placeholder becomes the module: the real body is executed in its own namespace. So whatever has been bound from
  it, as a module or as a name, is the real thing afterwards, and sys.modules never changes.
- Only three things load it: `LazyGroup.load`, explicit access to a name listed as public (with `open`, to any name but
  special ones, and private ones that the body does not say), and the import of a submodule. Setting and deleting are
  access, too: the body would undo them.
- While it loads, another thread that asks for such a name waits as for an import, and finds no module half done.
  Anything else raises AttributeError or answers from what is known without loading: __spec__, __path__, __file__,
  dir(), hasattr of any other name, pickle, copy.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident

from torch_npu_lazy.core import events, trigger
from torch_npu_lazy.core.once import Steps, make
from torch_npu_lazy.wheel.finder import finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)

_details: dict[str, _Details] = {}
"""Of each placeholder, by module name. Not in its namespace, which is the module's."""

_apart: set[str] = set()
"""Modules below a placeholder that can be imported without loading it."""


class LazyGroup:
    """Modules that load together.

    name: for the record. imports: modules that are imported before anything loads, normally the one whose trigger calls
    `load`. loaded: whether all modules are real.
    """

    def __init__(self, name: str, *, imports: Iterable[str] = ()) -> None:
        self.name = name
        self._modules: dict[str, Placeholder] = {}
        self._steps = Steps(name)

        def load() -> None:
            for module, placeholder in list(self._modules.items()):
                self._steps.run(f"body of {module}", _become, module, placeholder)

        load.__qualname__, load.__module__ = f"load {name}", __name__
        self.load = make(load, tuple(imports), self._steps)
        """Execute the modules' real bodies. Raises what these raise; the next call goes on from there."""

    @property
    def loaded(self) -> bool:
        return self.load.has_run

    def add(
        self,
        spec: ModuleSpec,
        *,
        idle: Iterable[str] = (),
        public: Iterable[str] = (),
        early: Callable[[ModuleType], object] | None = None,
        open: bool = False,
        quiet: bool = False,
        apart: Iterable[str] = (),
    ) -> ModuleSpec:
        """A spec whose import puts a placeholder in place of the module that `spec` would load; `spec` itself when that
        is loaded already.

        idle: functions that do nothing until then. public: names whose access loads. Both are listed by dir().
        early: called with the placeholder when it is imported, to put names in it that shall be there from the start.
        open: access to any other name loads too, but for special ones; for modules that are lazy because they are slow,
        not because they must not load. quiet: public names are not listed, but are `__all__`. apart: modules below this
        one that can be imported without loading it.
        """
        if self.loaded:
            return spec
        from importlib.machinery import ModuleSpec

        loader: Any = _PlaceholderLoader(
            _Details(self, spec, tuple(public), opens=open, quiet=quiet), tuple(idle), early
        )
        _apart.update(f"{spec.name}.{child}" for child in apart)
        lazy = ModuleSpec(spec.name, loader, origin=spec.origin)
        lazy.submodule_search_locations = spec.submodule_search_locations
        lazy.has_location = spec.has_location
        lazy.cached = spec.cached
        return lazy

    def _placeholder(self, details: _Details, idle: tuple[str, ...]) -> Placeholder:
        spec = details.spec
        module = Placeholder(spec.name)
        vars(module).update({name: _idle(module, name) for name in idle})
        _details[spec.name] = details
        self._modules[spec.name] = module
        if spec.submodule_search_locations is not None:
            trigger.finder.parents[spec.name] = self._load_for_child
            finder.seat()
        events.record("defer", f"{self.name}/body of {spec.name}")
        return module

    def _load_for_child(self, child: str) -> None:
        if child not in _apart:
            self._load_for_others()

    def _load_for_others(self) -> None:
        """Load, unless this is the thread that does."""
        if self.load._running_thread != get_ident():
            self.load()


def _idle(module: Placeholder, name: str) -> Callable[..., Any]:
    """A function that does nothing, and calls the real one once that is there."""

    def idle(*args: Any, **kwargs: Any) -> Any:
        real = vars(module)[name]
        return None if real is idle else real(*args, **kwargs)

    idle.__name__ = idle.__qualname__ = name
    idle.__module__ = vars(module)["__name__"]
    return idle


def _become(name: str, module: Placeholder) -> None:
    """Execute the real body in the placeholder. If it fails, the placeholder is one again."""
    spec = _details[name].spec
    kept = dict(vars(module))
    module.__spec__ = spec
    module.__loader__ = spec.loader
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except BaseException:
        # Never empty: other threads look at it.
        for new in vars(module).keys() - kept.keys():
            del vars(module)[new]
        vars(module).update(kept)
        raise
    # Not before: until now other threads wait. A body may have given its module a class of its own.
    if type(module) is Placeholder:
        module.__class__ = ModuleType  # type: ignore[assignment]
    trigger.finder.parents.pop(name, None)
    del _details[name]


class _Details:
    """What a placeholder must know."""

    __slots__ = ("group", "opens", "public", "quiet", "spec")

    def __init__(
        self, group: LazyGroup, spec: ModuleSpec, public: tuple[str, ...], *, opens: bool, quiet: bool
    ) -> None:
        self.group, self.spec, self.public, self.opens, self.quiet = group, spec, public, opens, quiet

    def loads(self, name: str) -> bool:
        """Whether access to a name does."""
        if name.startswith("__"):
            # Star import asks for this one.
            return name in self.public or (self.opens and name == "__all__")
        if name.startswith("_") and name not in self.public:
            # Tools try such names on whatever they meet (`_is_coroutine`, `_repr_html_`): what the body says counts.
            return self.opens and self._has(name)
        return self.opens or name in self.public

    def _has(self, name: str) -> bool:
        """Whether the body says the name, or there is a module of that name below it."""
        get_source = getattr(self.spec.loader, "get_source", None)
        try:
            source = get_source(self.spec.name) if get_source is not None else None
        except (ImportError, OSError):
            source = None
        if source is None or name in source:
            return True
        places = self.spec.submodule_search_locations or ()
        return any(os.path.exists(os.path.join(place, name + end)) for place in places for end in ("", ".py"))  # noqa: PTH110, PTH118


class _PlaceholderLoader:
    """The loader that makes a placeholder. What tools ask a loader for, the real one answers."""

    def __init__(self, details: _Details, idle: tuple[str, ...], early: Callable[[ModuleType], object] | None) -> None:
        self._details, self._idle, self._early = details, idle, early

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "load_module":
            raise AttributeError(name)
        return getattr(self._details.spec.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        del spec  # the placeholder keeps the real one
        return self._details.group._placeholder(self._details, self._idle)

    def exec_module(self, module: ModuleType) -> None:
        """Not the body: that is the point. A reload of a placeholder leaves it one."""
        if self._early is not None:
            self._early(module)


class Placeholder(ModuleType):
    """A module that is not loaded yet. Once it is, it is an ordinary module."""

    def __getattr__(self, name: str) -> Any:
        child = f"{vars(self)['__name__']}.{name}"
        if child in _apart:
            # `from package import child` asks here first.
            return _by_name(child)
        details = _details.get(vars(self)["__name__"])
        if details is not None and details.quiet and name == "__all__":
            return list(details.public)
        if details is not None and not details.loads(name):
            raise AttributeError(
                f"module {vars(self)['__name__']!r} has no attribute {name!r}; it is not loaded yet, and comes with "
                f"{details.group.name}",
                name=name,
                obj=self,
            )
        _load_for(self, name)
        # Still a placeholder inside its own loading, in this thread or in a circle with another.
        return ModuleType.__getattribute__(self, name) if type(self) is Placeholder else getattr(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        _load_for(self, name)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _load_for(self, name)
        ModuleType.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        details = _details.get(vars(self)["__name__"])
        return sorted({*vars(self)}.union(() if details is None or details.quiet else details.public))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_by_name, (vars(self)["__name__"],))

    def __repr__(self) -> str:
        return f"<module {vars(self)['__name__']!r} (not loaded yet)>"


def _load_for(placeholder: Placeholder, name: str) -> None:
    """Load it if access to the name does. Raises AttributeError if that fails: a scan with getattr(module, name,
    default) must survive; who wants to know why finds it as the cause."""
    home = vars(placeholder)["__name__"]
    details = _details.get(home)
    if details is None or not details.loads(name) or f"{home}.{name}" in _apart:
        return
    try:
        details.group._load_for_others()
    except Exception as error:
        raise AttributeError(
            f"module {home!r} has no attribute {name!r} yet: loading it failed with {events.failure(error)}; the next "
            "access tries again",
            name=name,
            obj=placeholder,
        ) from error


def _by_name(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]
