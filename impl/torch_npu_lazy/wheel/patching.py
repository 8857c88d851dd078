"""Executes the overlay's files: in the namespace of the wheel's module after that one's own body, or in its place."""

from __future__ import annotations

import os
import sys

from torch_npu_lazy.core import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any

    from torch_npu_lazy.profiles import Answer

OVERLAY = os.path.join(os.path.dirname(os.path.dirname(__file__)), "overlay")  # noqa: PTH118, PTH120


class PatchingLoader:
    """A loader that executes the wheel's body, then the overlay of the same path in the same namespace: what the
    overlay defines replaces what has its name there, and all callers find it. Gone from the module once that is done.

    patched: whether there is such an overlay. redirects: see `redirects.execute`.
    """

    def __init__(
        self, spec: ModuleSpec, *, patched: bool = True, redirects: Mapping[str, Answer] | None = None
    ) -> None:
        self._real: Any = spec.loader
        self._spec, self._patched, self._redirects = spec, patched, redirects
        self._defined: set[str] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        create = getattr(self._real, "create_module", None)  # older kinds of loaders have none
        return create(spec) if create is not None else None

    def before_body(self, module: ModuleType) -> None:
        """Execute the overlay in a placeholder. What its names stand for by then is put back after the wheel's body:
        others have it, and may have put something else there."""
        before = dict(vars(module))
        self._patch(module)
        absent = object()
        self._defined = {name for name, value in vars(module).items() if before.get(name, absent) is not value}

    def exec_module(self, module: ModuleType) -> None:
        for owner, attribute in ((self._spec, "loader"), (module.__spec__, "loader"), (module, "__loader__")):
            if getattr(owner, attribute, None) is self:
                setattr(owner, attribute, self._real)
        early = {name: value for name, value in vars(module).items() if name in (self._defined or ())}
        if self._redirects is None:
            execute(self._real, module)
        else:
            from torch_npu_lazy.wheel import redirects

            redirects.execute(body_of(self._real, module), vars(module), self._redirects)
        module = sys.modules.get(
            self._spec.name, module
        )  # a body, or an older kind of loader, may have put another there
        if self._defined is not None:
            vars(module).update(early)
        elif self._patched:
            self._patch(module)

    def _patch(self, module: ModuleType) -> None:
        from importlib.machinery import SourceFileLoader

        name = self._spec.name
        # The loader keeps the compiled code in a .pyc; the name is one that nothing is imported by.
        named = f"torch_npu_lazy.overlay.{name}"
        path = _path(name, package=self._spec.submodule_search_locations is not None)
        code = SourceFileLoader(named, path).get_code(named)
        assert code is not None
        documented = vars(module).get("__doc__")
        exec(code, vars(module))
        vars(module)["__doc__"] = documented
        events.record("patched", name)


class Own:
    """The wheel's own loader of a module that the overlay replaces. It finds the wheel's own spec in the module."""

    def __init__(self, spec: ModuleSpec) -> None:
        self._spec = type(spec)(spec.name, spec.loader, origin=spec.origin, loader_state=spec.loader_state)
        self._spec.submodule_search_locations = spec.submodule_search_locations
        self._spec.has_location, self._spec.cached = spec.has_location, spec.cached

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spec.loader, name)

    def get_filename(self, _: str) -> str | None:
        return self._spec.origin

    def exec_module(self, module: ModuleType) -> None:
        kept, module.__spec__ = module.__spec__, self._spec
        try:
            execute(self._spec.loader, module)
        finally:
            module.__spec__ = kept


def execute(loader: Any, module: ModuleType) -> None:
    """Execute a module by its own loader, of whatever kind Python accepts. Raises what the body raises."""
    if hasattr(loader, "exec_module"):
        loader.exec_module(module)
    else:
        loader.load_module(module.__name__)


def body_of(loader: Any, module: ModuleType) -> CodeType | Callable[[], object]:
    """The code of a module, or what executes it where its loader gives none (pytest's, which rewrites assertions)."""
    get_code = getattr(loader, "get_code", None)
    code = get_code(module.__name__) if get_code is not None and hasattr(loader, "exec_module") else None
    return code if code is not None else lambda: execute(loader, module)


def replaced(spec: ModuleSpec) -> ModuleSpec:
    """The overlay's file in place of the wheel's, whose loader stays at hand as `__spec__.loader_state`, an `Own`."""
    from importlib.machinery import SourceFileLoader

    path = _path(spec.name, package=spec.submodule_search_locations is not None)
    spec.loader_state, spec.loader = Own(spec), SourceFileLoader(spec.name, path)
    spec.origin, spec.cached = path, None
    events.record("replaced", spec.name)
    return spec


def added(name: str) -> ModuleSpec:
    """A module that the wheel lacks."""
    from importlib.util import spec_from_file_location

    spec = spec_from_file_location(name, _path(name, package=False))
    assert spec is not None
    events.record("added", name)
    return spec


def _path(name: str, *, package: bool) -> str:
    """The overlay's file for a module."""
    return os.path.join(OVERLAY, *name.split(".")[1:], *(["__init__"] if package else [])) + ".py"  # noqa: PTH118
