"""Modules that shall load later: a stand-in takes their place in sys.modules, notes what is called on it, and does it
in the same order once the time has come.

Invariants
- The stand-in becomes the module: the real body is executed in its own namespace. So whatever has been bound from it,
  as a module or as a name, is the real thing afterwards, and sys.modules never changes.
- Only three things wake it: `Deferral.wake`, explicit access to a name listed as public (with `open`, to any name but
  special ones), and the import of a submodule. Setting and deleting are access, too: the body would undo them.
- While it wakes, another thread that asks for such a name waits as for an import, and finds no module half done.
  Anything else raises AttributeError or answers from what is known without loading: __spec__, __path__, __file__,
  dir(), hasattr of any other name, pickle, copy.
- Recorded calls are done once each, in the order in which they were made, across all modules of the deferral; a
  failing one is done again by the next wake, and those after it wait for it.
- What a recorded call returns now is None.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from torch_npu_lazy.core import events, locks
from torch_npu_lazy.core.once import Steps, make
from torch_npu_lazy.core.trigger import finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)

_details: dict[str, _Details] = {}
"""Of each stand-in, by module name. Not in its namespace, which is the module's."""


class Deferral:
    """Modules that wake together.

    name: for the record. imports: modules that are imported before anything wakes, normally the one whose trigger calls
    `wake`. woken: whether all modules are real and all calls have been done.
    """

    def __init__(self, name: str, *, imports: Iterable[str] = ()) -> None:
        self.name = name
        self._modules: dict[str, Standin] = {}
        self._calls: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = []
        self._steps = Steps(name)

        def wake() -> None:
            self._replay()

        wake.__qualname__, wake.__module__ = f"wake {name}", __name__
        self.wake = make(wake, tuple(imports), self._steps)
        """Execute the modules' real bodies, then do the recorded calls. Raises what these raise; the next wake goes on
        from there."""

    @property
    def woken(self) -> bool:
        return self.wake.has_run

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls recorded so far, as "module.function"."""
        return tuple(f"{module}.{function}" for module, function, _, _ in self._calls)

    def add(
        self,
        spec: ModuleSpec,
        *,
        calls: Iterable[str] = (),
        public: Iterable[str] = (),
        early: Callable[[ModuleType], object] | None = None,
        open: bool = False,
        apart: Iterable[str] = (),
    ) -> ModuleSpec:
        """A spec whose import puts a stand-in in place of the module that `spec` would load; `spec` itself when the
        time has come already.

        calls: functions that are recorded when called. public: names whose access wakes. Both are listed by dir().
        early: called with the stand-in when it is imported, to put names in it that shall be there from the start.
        open: access to any other name wakes too, but for special ones; for modules that are deferred because they are
        slow, not because they must not load. apart: modules below this one that can be imported without waking it.
        """
        if self.woken:
            return spec
        from importlib.machinery import ModuleSpec

        loader: Any = _Standing(_Details(self, spec, tuple(calls), tuple(public), opens=open), early)
        finder.apart.update(f"{spec.name}.{child}" for child in apart)
        late = ModuleSpec(spec.name, loader, origin=spec.origin)
        late.submodule_search_locations = spec.submodule_search_locations
        late.has_location = spec.has_location
        late.cached = spec.cached
        return late

    def _standin(self, details: _Details) -> Standin:
        spec = details.spec
        module = Standin(spec.name)
        vars(module).update({name: Recorded(self, spec.name, name) for name in details.calls})
        _details[spec.name] = details
        self._modules[spec.name] = module
        if spec.submodule_search_locations is not None:
            finder.parents[spec.name] = self._wake_for_others
            with locks.state():
                finder.seat()
        events.record("defer", f"{self.name}/body of {spec.name}")
        return module

    def _wake_for_others(self) -> None:
        """Wake, unless this is the thread that does."""
        if self.wake._running_thread != get_ident():
            self.wake()

    def called(self, module: str, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a recorded function: kept while the time has not come, else done."""
        with locks.state():
            deferred = self._is_deferred(module, function)
            # A body that is executed by the waking thread calls its neighbours for real as soon as they are.
            if not self.woken and (deferred or self.wake._running_thread != get_ident()):
                self._calls.append((module, function, args, kwargs))
                events.record("defer", f"{self.name}/call {len(self._calls)}, {module}.{function}")
                return None
        return self.real(module, function)(*args, **kwargs)

    def real(self, module: str, name: str) -> Any:
        """A name of the real module. Raises AttributeError while it is deferred."""
        if not self._is_deferred(module, name):
            return getattr(self._modules[module], name)
        standin = self._modules[module]
        raise AttributeError(f"{module}.{name} is deferred until {self.name} wakes", name=name, obj=standin)

    def _is_deferred(self, module: str, name: str) -> bool:
        return isinstance(vars(self._modules[module]).get(name), Recorded)

    def _replay(self) -> None:
        for name, module in self._modules.items():
            self._steps.run(f"body of {name}", self._become, name, module)
        # Others may add calls until has_run is set; those are done here or, past the last look, by themselves.
        at = 0
        while True:
            with locks.state():
                if at == len(self._calls):
                    self.wake.has_run = True
                    return
                module, function, args, kwargs = self._calls[at]
            self._steps.run(f"call {at + 1}, {module}.{function}", self._do, module, function, args, kwargs)
            at += 1

    def _do(self, module: str, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.real(module, function)(*args, **kwargs)

    def _become(self, name: str, module: Standin) -> None:
        """Execute the real body in the stand-in. If it fails, the stand-in is one again."""
        details = _details[name]
        kept = dict(vars(module))
        for recorded in details.calls:
            vars(module).pop(recorded, None)
        module.__spec__ = details.spec
        module.__loader__ = details.spec.loader
        try:
            details.spec.loader.exec_module(module)  # type: ignore[union-attr]
        except BaseException:
            # Never empty: other threads look at it.
            for new in vars(module).keys() - kept.keys():
                del vars(module)[new]
            vars(module).update(kept)
            raise
        # Not before: until now other threads wait. A body may have given its module a class of its own.
        if type(module) is Standin:
            module.__class__ = ModuleType  # type: ignore[assignment]
        finder.parents.pop(name, None)
        del _details[name]


class _Details:
    """What a stand-in must know."""

    __slots__ = ("calls", "deferral", "opens", "public", "spec")

    def __init__(
        self, deferral: Deferral, spec: ModuleSpec, calls: tuple[str, ...], public: tuple[str, ...], *, opens: bool
    ) -> None:
        self.deferral, self.spec, self.calls, self.public, self.opens = deferral, spec, calls, public, opens

    def wakes(self, name: str) -> bool:
        """Whether access to a name does."""
        if name.startswith("__"):
            # Star import asks for this one.
            return name in self.public or (self.opens and name == "__all__")
        return self.opens or name in self.public


class _Standing:
    """The loader that makes a stand-in. What tools ask a loader for, the real one answers."""

    def __init__(self, details: _Details, early: Callable[[ModuleType], object] | None) -> None:
        self._details, self._spec, self._early = details, details.spec, early

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "load_module":
            raise AttributeError(name)
        return getattr(self._spec.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        del spec  # the stand-in keeps the real one
        return self._details.deferral._standin(self._details)

    def exec_module(self, module: ModuleType) -> None:
        """Not the body: that is the point. A reload of a stand-in leaves it one."""
        if self._early is not None:
            self._early(module)


class Standin(ModuleType):
    """A module that is deferred. Once it has woken it is an ordinary module."""

    def __getattr__(self, name: str) -> Any:
        child = f"{vars(self)['__name__']}.{name}"
        if child in finder.apart:
            # `from package import child` asks here first.
            return _by_name(child)
        details = _details.get(vars(self)["__name__"])
        if details is not None and not details.wakes(name):
            raise AttributeError(
                f"module {vars(self)['__name__']!r} has no attribute {name!r}; it is deferred until "
                f"{details.deferral.name} wakes",
                name=name,
                obj=self,
            )
        _wake_for(self, name)
        # Still a stand-in inside its own waking, in this thread or in a circle with another.
        return ModuleType.__getattribute__(self, name) if type(self) is Standin else getattr(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        _wake_for(self, name)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _wake_for(self, name)
        ModuleType.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        details = _details.get(vars(self)["__name__"])
        return sorted({*vars(self)}.union(details.public if details is not None else ()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_by_name, (vars(self)["__name__"],))

    def __repr__(self) -> str:
        return f"<module {vars(self)['__name__']!r} (deferred)>"


def _wake_for(standin: Standin, name: str) -> None:
    """Wake it if access to the name does. Raises AttributeError if that fails: a scan with getattr(module, name,
    default) must survive; who wants to know why finds it as the cause."""
    home = vars(standin)["__name__"]
    details = _details.get(home)
    if details is None or not details.wakes(name) or f"{home}.{name}" in finder.apart:
        return
    try:
        details.deferral._wake_for_others()
    except Exception as error:
        raise AttributeError(
            f"module {home!r} has no attribute {name!r} yet: loading it failed with {events.failure(error)}; the next "
            "access tries again",
            name=name,
            obj=standin,
        ) from error


class Recorded:
    """A name bound from a stand-in: a call is recorded while its module is deferred; afterwards it is the real
    thing."""

    __slots__ = ("__weakref__", "_deferral", "_module", "_name")

    def __init__(self, deferral: Deferral, module: str, name: str) -> None:
        self._deferral, self._module, self._name = deferral, module, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._deferral.called(self._module, self._name, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        own = {"__name__": self._name, "__qualname__": self._name}
        try:
            real = self._deferral.real(self._module, self._name)
        except AttributeError:
            if name in own:
                return own[name]
            raise AttributeError(
                f"{self._module}.{self._name} is deferred until {self._deferral.name} wakes: no attribute {name!r} yet",
                name=name,
                obj=self,
            ) from None
        return real if name == "__wrapped__" else getattr(real, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_recorded, (self._module, self._name))

    def __repr__(self) -> str:
        return f"<{self._module}.{self._name}, deferred with {self._deferral.name}>"


def _by_name(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]


def _recorded(module: str, name: str) -> Any:
    return getattr(_by_name(module), name)
