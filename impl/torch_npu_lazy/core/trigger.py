"""Run something when a module has been imported, by whatever route, and leave no trace on the module.

Invariants
- sys.meta_path is only ever added to, and never while a lookup of ours runs: removing an entry would make another
  thread's lookup skip one. The one finder stays for good, since importlib.reload looks the module up again.
- A lookup has no effect but its answer: others decide where the module comes from, each is asked once, with the path
  and target received. Only the loader in the answer is ours, and it forwards everything to the real one.
- Before the module's body runs, `__loader__` and `__spec__.loader` are the real loader again.
- A finder that is put in front later and answers for the module itself does not keep the callback from running: the
  module's body imports others, and the first lookup of those that comes here shows what is under way. The callback then
  runs at the end of that import, under the module's lock too.
- A module inside a package that does something first (`Finder.parents`) is made once, even if that imports it.
- Whoever returns from the import sees the callback finished, or its error kept: it runs under the module's import lock.
- What the callback raises never leaves the import, since the module's children would stay behind without it and it
  could not be imported again. The error is kept; `ensure()` tries again and raises. What the body raises is not
  touched.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from . import events, locks
from .once import bodies_done, import_first, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Callback = Callable[[ModuleType], object]


class Trigger:
    """One callback waiting for one module. Made by `when_imported`.

    fired: whether the callback has succeeded. error: what it last raised if it has not succeeded since, else None.
    settled: fired, and nothing kept; then `ensure()` does nothing. subject: its name in the record.
    """

    def __init__(self, name: str, callback: Callback, again: Callback | None) -> None:
        self.name = name
        self.error: BaseException | None = None
        self.settled = False
        self._again = again
        self._owed = False
        self._failed_in: dict[int, BaseException] = {}

        def fire(module: ModuleType) -> None:
            callback(module)

        fire.__qualname__ = f"{getattr(callback, '__qualname__', '?')} on import of {name}"
        fire.__module__ = getattr(callback, "__module__", None) or "?"
        self.subject = f"{fire.__module__}.{fire.__qualname__}"
        self._fire = make(fire)

    @property
    def fired(self) -> bool:
        return self._fire.has_run

    def ensure(self) -> None:
        """Import the module and see the callback done, for entry points that need it. Raises what either raises; a
        later call tries again. Returns early only inside a circle, as `run_once` does."""
        if self.settled:
            return
        me = get_ident()
        self._failed_in.pop(me, None)
        finder.seat()
        import_first(self.name)
        error = self._failed_in.pop(me, None)
        # If it failed in this call's own import, that was this call's attempt.
        if error is None and not self.settled:
            error = self._attempt(sys.modules[self.name], repeated=self._owed)
            self._failed_in.pop(me, None)
        if error is not None:
            raise error

    def executed(self, module: ModuleType) -> None:
        """The module's body has run, in the import that is under way. Raises nothing."""
        self._attempt(module, repeated=self.fired)

    def _attempt(self, module: ModuleType, *, repeated: bool) -> BaseException | None:
        try:
            if not repeated:
                self._fire(module)
            elif self._again is not None:
                self._again(module)
        except BaseException as error:
            self._failed_in[get_ident()] = error
            with locks.state():
                # Another thread that waited may have succeeded since.
                if repeated or not self.fired:
                    self.error, self.settled, self._owed = error, False, repeated
            events.record("kept", self.subject, events.failure(error))
            return error
        with locks.state():
            if self.fired:
                self.error, self.settled, self._owed = None, True, False
        return None


def when_imported(name: str, callback: Callback, *, again: Callback | None = None) -> Trigger:
    """Call callback(module) once, right after `name` has been imported, or now if it has.

    again: called with the module for each further execution of its body (importlib.reload, or an import after it was
    taken out of sys.modules), when whatever was patched on the module itself is gone.
    A module blocked by None in sys.modules counts as not imported. One whose import is under way is waited for: the
    callback runs when it ends. Raises nothing that the callback raises; see `Trigger.ensure`.
    """
    trigger = Trigger(name, callback, again)
    events.record("defer", trigger.subject)
    with locks.state():
        locks.watched.add(name)
        finder.watched[name] = (*finder.watched.get(name, ()), trigger)
        finder.seat()
        module = sys.modules.get(name)
        if module is None:
            finder.gone(name)
        if module is None or name in _executing or _fires_at_the_end(module, trigger):
            return trigger
    trigger.executed(module)
    return trigger


class Relay:
    """A finder that gives, changed, what the finders behind it answer."""

    def __init__(self) -> None:
        self._asking: set[tuple[int, str]] = set()
        locks.at_fork(self)

    def ask(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        """The answer of those behind."""
        asking = (get_ident(), name)
        if asking in self._asking:
            # One of those asked looks the name up itself. It gets the plain answer, from the finders behind.
            return None
        self._asking.add(asking)
        try:
            finders = list(sys.meta_path)
            # Those in front have been asked by the lookup that has come here, and knew nothing.
            here = next((index for index, one in enumerate(finders) if one is self), -1)
            for other in finders[here + 1 :]:
                find_spec = None if other is self else getattr(other, "find_spec", None)
                spec = find_spec(name, path, target) if find_spec is not None else None
                if spec is not None:
                    return spec
            return None
        finally:
            self._asking.discard(asking)

    def after_fork(self, thread: int) -> None:
        """Forget the lookups of threads that a forked child does not have."""
        self._asking = {asking for asking in self._asking if asking[0] == thread}


class Finder(Relay):
    """The entry in sys.meta_path; there is one, `finder`."""

    def __init__(self) -> None:
        super().__init__()
        self.watched: dict[str, tuple[Trigger, ...]] = {}
        self.awaited: tuple[str, ...] = ()
        """Those of the watched modules whose body has not been seen to run."""
        self.parents: dict[str, Callable[[str], object]] = {}
        """By package, what is called with the name of a module below it before that is made."""
        self.anew: set[str] = set()
        """Packages whose import starts anew in this child; their children are there."""

    def seat(self) -> None:
        """See that no other finder is asked first. Adds, never removes: see the module's invariants."""
        if not sys.meta_path or sys.meta_path[0] is not self:
            sys.meta_path.insert(0, self)  # type: ignore[arg-type]

    def notice(self) -> None:
        """See whether an awaited module is being imported without this finder having been asked for it. Costs a look at
        sys.modules for each; may be called from anywhere, and is for every lookup that comes here."""
        for name in self.awaited:
            module = sys.modules.get(name)
            spec: Any = getattr(module, "__spec__", None)
            if not getattr(spec, "_initializing", False) or type(getattr(spec, "loader", None)) in (
                Loader,
                LegacyLoader,
            ):
                continue
            # A lookup holds the import system's one lock of lookups, which a fork takes while it has the mutex: here
            # nobody may wait. The next lookup will see the same.
            if not locks.state().acquire(blocking=False):
                return
            try:
                if name not in self.awaited or name in _executing:
                    continue
                self.seen(name)
                events.record("overlooked", f"import of {name}", "a finder in front answers for it")
                for trigger in self.watched[name]:
                    _fires_at_the_end(module, trigger)  # type: ignore[arg-type]
            finally:
                locks.state().release()

    def seen(self, name: str) -> None:
        """The module's body runs, or has run. Needs `locks.state()`."""
        self.awaited = tuple(each for each in self.awaited if each != name)

    def gone(self, name: str) -> None:
        """The body has failed, so the module is still to come. Needs `locks.state()`."""
        if name not in self.awaited:
            self.awaited = (*self.awaited, name)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The others' answer, for the watched names only."""
        if self.awaited:
            self.notice()
        before = self.parents.get(name.rpartition(".")[0])
        if name not in self.watched and before is None and name not in self.anew:
            return None
        spec = self.ask(name, path, target)
        if spec is None or spec.loader is None or type(spec.loader) in (Loader, LegacyLoader):
            return spec
        kind = Loader if hasattr(spec.loader, "exec_module") else LegacyLoader
        spec.loader = kind(spec.loader, spec, before)  # type: ignore[assignment]
        return spec


class LegacyLoader:
    """Stands for a real loader until the module is executed. Every attribute but the hooks' is the real loader's own,
    its class included."""

    __slots__ = ("_before", "_made", "_real", "_spec")

    def __init__(self, real: Any, spec: ModuleSpec, before: Callable[[str], object] | None) -> None:
        object.__setattr__(self, "_real", real)
        object.__setattr__(self, "_spec", spec)
        object.__setattr__(self, "_before", before)
        object.__setattr__(self, "_made", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_real"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return type(self._real)

    def __eq__(self, other: object) -> bool:
        return self._real == (_real(other) if type(other) in (Loader, LegacyLoader) else other)

    def __hash__(self) -> int:
        return hash(self._real)

    def __repr__(self) -> str:
        return repr(self._real)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._real.__reduce_ex__(protocol)

    def load_module(self, name: str) -> ModuleType:
        """For loaders older than exec_module, which make the module themselves."""
        self._give_back()
        if self._before is not None:
            self._before(name)
        with _Execution(name) as execution:
            module = self._real.load_module(name)
            execution.body_done(sys.modules.get(name, module))
        return module

    def _give_back(self, module: ModuleType | None = None) -> None:
        """Put the real loader where the import system has put this one."""
        for spec in (self._spec, getattr(module, "__spec__", None)):
            if spec is not None and spec.loader is self:
                spec.loader = self._real
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._real  # type: ignore[union-attr]


class Loader(LegacyLoader):
    """The same for loaders of today."""

    __slots__ = ()

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if self._before is not None:
            # Not when the module is executed: then it would be in sys.modules, empty, for whatever this imports.
            self._before(spec.name)
            made = sys.modules.get(spec.name)
            if made is not None:
                # Imported on the way. There must not be a second one.
                object.__setattr__(self, "_made", (made, made.__spec__))
                return made
        create = getattr(self._real, "create_module", None)
        return create(spec) if create is not None else None

    def exec_module(self, module: ModuleType) -> None:
        spec = getattr(module, "__spec__", None)
        name = getattr(spec, "name", None) or module.__name__
        self._give_back(module)
        if self._made is not None and self._made[0] is module:
            module.__spec__ = self._made[1]
            return
        if name in finder.anew:
            finder.anew.discard(name)
            # They have been imported into the module that is gone, and nobody else would put them into this one.
            for child, there in list(sys.modules.items()):
                if child.rpartition(".")[0] == name and there is not None:
                    vars(module)[child.rpartition(".")[2]] = there
        # A copy that somebody makes beside the import is not the module that the callback is about.
        if sys.modules.get(name) is not module:
            self._real.exec_module(module)
            return
        with _Execution(name) as execution:
            self._real.exec_module(module)
            execution.body_done(sys.modules.get(name, module))


def _real(loader: Any) -> Any:
    return object.__getattribute__(loader, "_real")


class _Execution:
    """A watched module's body and its callbacks, as one piece of work that no fork cuts in two."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> _Execution:
        with locks.state():
            finder.seen(self._name)
            locks.begin(self, f"import of {self._name}")
            _executing[self._name] = _executing.get(self._name, 0) + 1
        return self

    def body_done(self, module: ModuleType) -> None:
        """Fire all that is watched, including what is added meanwhile, for instance by the body."""
        fired: list[Trigger] = []
        bodies_done[self._name] = get_ident()
        while True:
            with locks.state():
                rest = [trigger for trigger in finder.watched.get(self._name, ()) if trigger not in fired]
                if not rest:
                    self._leave()
                    return
            for trigger in rest:
                fired.append(trigger)
                trigger.executed(module)

    def _leave(self) -> None:
        bodies_done.pop(self._name, None)
        _executing[self._name] = _executing.get(self._name, 1) - 1
        if _executing[self._name] <= 0:
            del _executing[self._name]

    def __exit__(self, kind: object, *_: object) -> None:
        with locks.state():
            if kind is not None:
                self._leave()
                finder.gone(self._name)
            locks.end(self)


class _Endings:
    """What fires when an import that was under way before anybody watched it comes to its end. The import system marks
    the end by a plain assignment to the spec, and that is all there is to hook: the loader is already at work."""

    def __init__(self, spec: Any, first: Trigger) -> None:
        self.triggers = [first]
        plain = type(spec)
        endings = self

        class Ending(plain):
            _endings = endings

            def __setattr__(self, attribute: str, value: object) -> None:
                if attribute == "_initializing" and not value:
                    endings.fire(self, plain)
                # Not super(): the class is the plain one again.
                plain.__setattr__(self, attribute, value)  # type: ignore[call-arg]

        spec.__class__ = Ending

    def fire(self, spec: Any, plain: type) -> None:
        name = spec.name
        # Absent if the body has failed; then the next import comes through the finder.
        module = sys.modules.get(name)
        work = object()
        with locks.state():
            locks.begin(work, f"import of {name}")
            bodies_done[name] = get_ident()
        try:
            while True:
                with locks.state():
                    rest, self.triggers = self.triggers, []
                    if module is None:
                        finder.gone(name)
                    if not rest or module is None:
                        spec.__class__ = plain
                        bodies_done.pop(name, None)
                        return
                for trigger in rest:
                    trigger.executed(module)
        finally:
            locks.end(work)


def _fires_at_the_end(module: ModuleType, trigger: Trigger) -> bool:
    """If the module's import is under way, have the trigger fire at its end, under the module's lock; whether it
    will."""
    spec: Any = getattr(module, "__spec__", None)
    if not getattr(spec, "_initializing", False):
        return False
    endings: _Endings | None = getattr(type(spec), "_endings", None)
    if endings is not None:
        endings.triggers.append(trigger)
        return True
    plain = type(spec)
    try:
        _Endings(spec, trigger)
    except (TypeError, AttributeError):  # a spec of a class that cannot be extended, or a stand-in for one
        return False
    # The end may have come between the two looks. The assignment is then past; what has not been taken over fires now.
    if not spec._initializing and type(spec)._endings.triggers:
        type(spec)._endings.triggers.clear()
        spec.__class__ = plain
        return False
    return True


class _Repair:
    """In a child whose parent's other thread was importing a watched module: without help the child would wait for ever
    for that thread's lock of it, or of a module below it. A fork waits for such an import, but the lock can be taken
    after it has looked, and a thread that stands still is not waited for."""

    def after_fork(self, thread: int) -> None:
        gone = [name for name, ident in bodies_done.items() if ident != thread]
        for name in dict.fromkeys([*locks.abandoned(thread), *gone]):
            locks.forget_import(name)
            done = bodies_done.pop(name, None) is not None
            _executing.pop(name, None)
            module = sys.modules.get(name)
            spec: Any = getattr(module, "__spec__", None)
            if not getattr(spec, "_initializing", False):
                continue
            endings: _Endings | None = getattr(type(spec), "_endings", None)
            if endings is not None:
                endings.triggers = []
            if not done:
                del sys.modules[name]
                finder.anew.add(name)
                if name in locks.watched:
                    finder.gone(name)
                events.record("fork", f"import of {name}", "starts anew in this child")
                continue
            # The body has run, so the module is whole: end its import, by binding it in its parent.
            spec._initializing = False
            parent, _, last = name.rpartition(".")
            if parent in sys.modules and not hasattr(sys.modules[parent], last):
                setattr(sys.modules[parent], last, module)
            events.record("fork", f"import of {name}", "counts as ended in this child, its callback has not run")


_executing: dict[str, int] = {}
finder = Finder()
locks.at_fork(_Repair())
