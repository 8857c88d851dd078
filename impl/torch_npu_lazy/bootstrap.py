"""Puts the overlay in place: finds out which release is installed, takes its table from `ports`, and answers for the
modules named there, and for nothing else, when they are imported.

Nothing of torch is imported here. The release is read from the packages' own version files when `torch_npu` is looked
up, so neither installed metadata nor the order of sys.path at start-up matter.
"""

from __future__ import annotations

import os
import sys

from torch_npu_lazy.core import events
from torch_npu_lazy.core.trigger import finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from torch_npu_lazy.core.deferral import Deferral
    from torch_npu_lazy.ports import Port

PACKAGE = "torch_npu"
OVERLAY = os.path.join(os.path.dirname(__file__), "overlay")  # noqa: PTH118, PTH120

port: Port | None = None
"""The table in force, once torch_npu has been looked up."""

refusal: str | None = None
"""Why nothing is in force, in one line."""

deferrals: dict[str, Deferral] = {}
"""By name, those of the table in force."""


def activate() -> None:
    """Wait for the import of torch_npu. Says in one line on stderr if it is too late for that."""
    if finder.rewrites.get(PACKAGE) is _begin:
        return  # a reload: what is in force, or waits, stays so
    if PACKAGE in sys.modules:
        _refuse("torch_npu has been imported before; import torch_npu_lazy first, or enable it for the environment")
        return
    finder.rewrites[PACKAGE] = _begin
    finder.announcements.append(_announced)
    # Without the mutex of `locks`, which would import threading in every process of an enabled environment.
    finder.seat()


def look() -> None:
    """Choose the table now, without importing anything of torch. For those who ask what is in force."""
    from importlib.util import find_spec

    if port is not None or refusal is not None:
        return
    spec = find_spec(PACKAGE)
    if spec is None:
        _refuse("torch_npu is not installed here", aloud=False)
    else:
        _settle(spec)


def _announced(context: Any) -> list[Any]:
    """For importlib.metadata: the backends that the wheel announces in later releases only."""
    # Nor to who lists certain directories, as pip does: it is in none.
    if context.name not in (None, "torch_npu_lazy") or "path" in vars(context):
        return []
    look()
    if port is None or not port.backends:
        return []
    from torch_npu_lazy.announcement import Announcement

    return [Announcement(port.backends)]


def _begin(spec: ModuleSpec) -> ModuleSpec:
    """torch_npu is being looked up, under the one lock that all lookups of a process share. What imports anything is
    left to its loader: another thread may be importing that very thing, and be waiting to look something up itself."""
    spec.loader = Amending(spec.loader, spec)  # type: ignore[assignment]
    return spec


def _settle(spec: ModuleSpec) -> None:
    """Choose the table, once."""
    global port  # noqa: PLW0603
    if port is None and refusal is None:
        chosen = _choose(spec)
        if chosen is not None:
            _install(chosen)
            _make_known(spec, chosen.fakes)
            # Last: who finds it goes on and imports. Two threads that find none install the same, which does no harm.
            port = chosen


def _choose(spec: ModuleSpec) -> Port | None:
    from torch_npu_lazy import ports

    torch_npu, torch = _version(spec.origin), _version(_origin("torch"))
    if torch_npu is None or torch is None:
        missing = "torch_npu" if torch_npu is None else "torch"
        _refuse(f"the version of {missing} cannot be read from its version.py")
        return None
    found = ports.find(torch_npu, torch)
    if found is None:
        known = ", ".join(f"torch_npu {ours} with torch {theirs}" for ours, theirs in ports.SUPPORTED.items())
        _refuse(f"torch_npu {torch_npu} with torch {torch} is not supported, and is left as it is; supported: {known}")
        return None
    events.record("port", f"torch_npu {torch_npu} with torch {torch}")
    return found


def _install(chosen: Port) -> None:
    # For the lookups to come: see `_begin`.
    from importlib import machinery, util  # noqa: F401

    from torch_npu_lazy.core.deferral import Deferral
    from torch_npu_lazy.core.trigger import when_imported

    for name in {*chosen.amended, *chosen.prepared, *chosen.imports}:
        finder.rewrites.setdefault(name, _amended)
    for name in chosen.ours:
        finder.rewrites[name], finder.additions[name] = _ours, _addition
    for name, late in chosen.late.items():
        if late.deferral not in deferrals:
            waits_for = chosen.wakes.get(late.deferral)
            deferrals[late.deferral] = Deferral(late.deferral, imports=[waits_for] if waits_for else [])
        finder.rewrites[name] = _late
    for name, waits_for in chosen.wakes.items():
        if name in deferrals:
            when_imported(waits_for, lambda _, wake=deferrals[name].wake: wake())


def _make_known(package: ModuleSpec, names: tuple[str, ...]) -> None:
    """Tell inspect beforehand whose file is whose. torch asks it that for each fake implementation, and to find out
    inspect resolves the paths of all loaded modules, a thousand."""
    import inspect

    for name in names:
        folder, parts = os.path.dirname(package.origin or ""), name.split(".")[1:]  # noqa: PTH120
        path = os.path.normcase(os.path.abspath(f"{os.path.join(folder, *parts)}.py"))  # noqa: PTH100, PTH118
        # Without this, which no document promises, the same answer takes longer.
        getattr(inspect, "modulesbyfile", {})[path] = name


def wake(deferral: str) -> None:
    """Wake a deferral of the table in force, if that has one of this name. Raises what waking raises."""
    if deferral in deferrals:
        deferrals[deferral].wake()


def _ours(spec: ModuleSpec) -> ModuleSpec:
    """The overlay's file in place of the wheel's, whose loader stays at hand as `__spec__.loader_state`."""
    from importlib.machinery import SourceFileLoader

    path = _path(spec.name, package=spec.submodule_search_locations is not None)
    spec.loader_state, spec.loader = spec.loader, SourceFileLoader(spec.name, path)
    spec.origin, spec.cached = path, None
    events.record("ours", spec.name)
    return spec


def _addition(name: str) -> ModuleSpec:
    """A module that the wheel lacks."""
    from importlib.util import spec_from_file_location

    spec = spec_from_file_location(name, _path(name, package=False))
    assert spec is not None
    events.record("ours", name)
    return spec


def _amended(spec: ModuleSpec) -> ModuleSpec:
    assert spec.loader is not None
    if port is not None and any(spec.name in names for names in (port.amended, port.prepared, port.imports)):
        spec.loader = Amending(spec.loader, spec)  # type: ignore[assignment]
    return spec


def _late(spec: ModuleSpec) -> ModuleSpec:
    assert port is not None
    late = port.late[spec.name]
    spec = _amended(spec)
    early = None
    if late.early:
        amending: Any = spec.loader
        early = amending.before_body
    return deferrals[late.deferral].add(
        spec, calls=late.calls, public=late.public, early=early, open=late.open, apart=late.apart
    )


class Amending:
    """A loader that executes the wheel's body, then the overlay of the same path in the same namespace: what the
    overlay defines replaces what has its name there, and all callers find it. Gone from the module once that is done.
    A prepared module has a file "<path>_before.py", too, which is executed in front of the wheel's body.
    """

    def __init__(self, real: Any, spec: ModuleSpec) -> None:
        self._real, self._spec = real, spec
        self._defined: set[str] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if spec.name == PACKAGE:
            _settle(spec)
        return self._real.create_module(spec)

    def before_body(self, module: ModuleType) -> None:
        """Execute the overlay in a stand-in. What its names stand for by then is put back after the wheel's body:
        others have it, and may have put something else there."""
        before = dict(vars(module))
        self._amend(module)
        absent = object()
        self._defined = {name for name, value in vars(module).items() if before.get(name, absent) is not value}

    def exec_module(self, module: ModuleType) -> None:
        for owner, attribute in ((self._spec, "loader"), (module.__spec__, "loader"), (module, "__loader__")):
            if getattr(owner, attribute, None) is self:
                setattr(owner, attribute, self._real)
        early = {name: value for name, value in vars(module).items() if name in (self._defined or ())}
        self._execute(module)
        if self._defined is not None:
            vars(module).update(early)
        elif port is not None and self._spec.name in port.amended:
            self._amend(module)

    def _execute(self, module: ModuleType) -> None:
        name = self._spec.name
        if port is not None and name in port.prepared:
            amend(f"{name}_before", vars(module), package=False)
        answers = port.imports.get(name) if port is not None else None
        if answers is None:
            self._real.exec_module(module)
        else:
            from torch_npu_lazy.core import promise

            promise.execute(self._real.get_code(name), vars(module), answers)

    def _amend(self, module: ModuleType) -> None:
        amend(self._spec.name, vars(module), package=self._spec.submodule_search_locations is not None)


def amend(name: str, namespace: dict[str, Any], *, package: bool) -> None:
    """Execute the overlay of a module in a namespace."""
    from importlib.machinery import SourceFileLoader

    # The loader keeps the compiled code in a .pyc; the name is one that nothing is imported by.
    named = f"torch_npu_lazy.overlay.{name}"
    code = SourceFileLoader(named, _path(name, package=package)).get_code(named)
    assert code is not None
    documented = namespace.get("__doc__")
    exec(code, namespace)
    namespace["__doc__"] = documented
    events.record("amend", name)


def _path(name: str, *, package: bool) -> str:
    """The overlay's file for a module."""
    return os.path.join(OVERLAY, *name.split(".")[1:], *(["__init__"] if package else [])) + ".py"  # noqa: PTH118


def _refuse(why: str, *, aloud: bool = True) -> None:
    global refusal  # noqa: PLW0603
    refusal = why
    events.record("refused", why)
    if aloud:
        print(f"torch_npu_lazy: {why}", file=sys.stderr)


def _origin(package: str) -> str | None:
    module = sys.modules.get(package)
    if module is not None:
        return getattr(module, "__file__", None)
    from importlib.util import find_spec

    spec = find_spec(package)
    return spec.origin if spec is not None else None


def _version(origin: str | None) -> str | None:
    """The public version that a package's version.py states; its local part does not count."""
    if origin is None:
        return None
    path = os.path.join(os.path.dirname(origin), "version.py")  # noqa: PTH118, PTH120
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.split(":")[0].strip() == "__version__" and value.strip()[:1] in ("'", '"'):
            return value.strip()[1:].partition(value.strip()[0])[0].partition("+")[0]
    return None


def state() -> Mapping[str, object]:
    """What is in force in this process."""
    return {
        "port": None if port is None else f"torch_npu {port.torch_npu} with torch {port.torch}",
        "refusal": refusal,
    }
