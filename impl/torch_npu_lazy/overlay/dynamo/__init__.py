"""The NPU's backends of Dynamo: registered once each, whoever came first; and placeholders for torchair and
npugraph_ex until somebody imports them.

Complete by itself: where a release is not lazy this file stands for the wheel's, whose body loads Dynamo and registers.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader

import torch_npu.dynamo as this

from torch_npu_lazy.core import events
from torch_npu_lazy.core.trigger import finder
from torch_npu_lazy.wheel.finder import finder as wheel_finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


__all__: list[str] = []
NPUGRAPH_EX_BACKEND = "npugraph_ex"

_folder: str = next(iter(this.__path__))


# --- placeholders ---


class _ImportedSpec(ModuleSpec):
    """The spec of a placeholder. Python asks a module in sys.modules whether it is initializing when, and only when, an
    import statement names it, so that is the time to load; everything else on a spec may be looked at for nothing.

    What loading raises leaves importlib.import_module, but not an import statement before Python 3.13, which drops it;
    then the placeholder tells it.
    """

    _placeholder: _LazyBackend | None = None

    @property
    def _initializing(self) -> bool:
        if self._placeholder is not None:
            self._placeholder._load()
        return False

    @_initializing.setter
    def _initializing(self, value: bool) -> None:
        """As ModuleSpec's constructor does."""


class _LazyBackend:
    """Stands in sys.modules for a package that lies inside torch_npu.dynamo, until an import statement names it or one
    of its children is imported. Looking at it loads nothing and raises AttributeError at most; once an import has
    failed, the package's own names raise the cause, after another try.
    """

    _slot = ""
    """The attribute that holds the real package; code outside reads and sets it."""

    def __init__(self, pkg_name: str) -> None:
        folder = os.path.join(_folder, pkg_name)  # noqa: PTH118
        file = os.path.join(folder, "__init__.py")  # noqa: PTH118
        spec = _ImportedSpec(pkg_name, SourceFileLoader(pkg_name, file), origin=file, is_package=True)
        spec.submodule_search_locations = [folder]
        spec.has_location = True
        self.__name__ = self.__package__ = self._pkg_name = pkg_name
        self.__file__, self.__path__, self.__spec__, self.__loader__ = file, [folder], spec, spec.loader
        self._failed = False
        setattr(self, self._slot, None)
        spec._placeholder = self
        finder.parents[pkg_name] = lambda _: self._load()
        finder.seat()

    def _load(self) -> None:
        """Import the real package. Raises what that raises; the next time tries again.

        The import system's own lock is the only one here. In a circle, and while the package imports its children, the
        package is found half done, as in any circular import.
        """
        if getattr(self, self._slot) is not None:
            return
        name = f"{__name__}.{self._pkg_name}"
        try:
            package = import_module(name)
        except BaseException as error:
            self._failed = True
            events.record("failed", f"import of {name}", events.failure(error))
            raise
        if not getattr(package.__spec__, "_initializing", False):
            self._failed = False
            setattr(self, self._slot, package)
            _bind_lazy_submodules(self, package, self._pkg_name)

    def __setattr__(self, name: str, value: object) -> None:
        """What is set on the one shows on the other: children that are imported later, and what a user sets."""
        object.__setattr__(self, name, value)
        package = vars(self).get(self._slot)
        if package is not None and name != self._slot:
            setattr(package, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        package = vars(self).get(self._slot)
        if package is not None and name in vars(package):
            delattr(package, name)

    def __getattr__(self, name: str) -> Any:
        own = vars(self)
        package = own.get(self._slot) or sys.modules.get(f"{__name__}.{own.get('_pkg_name')}")
        if package is None and own.get("_failed") and name in _public_names(own["__path__"][0]):
            self._load()
            package = own[self._slot]
        if package is None:
            raise AttributeError(
                f"Try to get {own.get('_pkg_name')}'s attr `{name}` before {own.get('_pkg_name')} is initialized."
                + self._pta_error_code()
            )
        try:
            return getattr(package, name)
        except AttributeError:
            _bind_lazy_submodules(self, package, self._pkg_name)
            return getattr(package, name)

    @staticmethod
    def _pta_error_code() -> str:
        """As torch_npu ends its errors, without importing the module that it has for that: somebody may be walking
        through sys.modules."""
        now = time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime())
        return f"\n[ERROR] {now} (PID:{os.getpid()}, Device:-1, RankID:-1) ERR00005 PTA internal error"


class _LazyTorchair(_LazyBackend):
    _slot = "_torchair"


class _LazyNpuGraphEx(_LazyBackend):
    _slot = "_npugraph_ex"


def _bind_lazy_submodules(proxy: object, package: ModuleType, pkg_name: str) -> None:
    """Have a placeholder and the package show the same loaded children, by whichever name these were imported."""
    for name, module in list(sys.modules.items()):
        parent, _, child = name.rpartition(".")
        if module is not None and parent in (pkg_name, package.__name__):
            setattr(proxy, child, module)
            setattr(package, child, module)


def _install_lazy_torchair() -> bool:
    """Put the placeholder for torchair in its place, unless that is taken. Whether the wheel has a torchair."""
    if not os.path.exists(os.path.join(_folder, "torchair")):  # noqa: PTH110, PTH118
        return False
    if "torchair" not in sys.modules:
        sys.modules["torchair"] = _LazyTorchair("torchair")  # type: ignore[assignment]
    return True


def _public_names(folder: str) -> set[str]:
    """The names that a package offers, read from its text and its files: its __all__, and its children."""
    import ast

    names = {entry.partition(".")[0] for entry in os.listdir(folder)}  # noqa: PTH208
    with open(os.path.join(folder, "__init__.py"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        tree = ast.parse(file.read())
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            names.update(ast.literal_eval(node.value))
    return {name for name in names if not name.startswith("_")}


def _keep_signals(spec: ModuleSpec) -> ModuleSpec:
    """Have the signal handlers be, after the module's body, what they were: npugraph_ex puts one in place of the user's
    that ends no process and hands nothing on."""
    loader: Any = spec.loader
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.getsignal(number) for number in numbers}
        try:
            execute(module)
        finally:
            if threading.current_thread() is threading.main_thread():
                for number, handler in before.items():
                    # None: set by code that is not Python's, which cannot be put back.
                    if handler is not None and signal.getsignal(number) is not handler:
                        signal.signal(number, handler)

    loader.exec_module = exec_module
    return spec


wheel_finder.rewrites.setdefault(f"{__name__}.{NPUGRAPH_EX_BACKEND}", _keep_signals)


# --- backends ---

_global_npu_backend: dict[str, Callable[..., Any]] = {}
"""torchair's backend, by name, once it has been made."""


def _eager_npu_backend(gm: Any, *_args: Any, **_options: Any) -> Any:
    return gm


def _get_global_npu_backend(name: str, config: Any = None) -> Callable[..., Any]:
    """torchair's backend. Raises what its import raises, and AssertionError if somebody has taken it away."""
    if name != NPUGRAPH_EX_BACKEND and name in _global_npu_backend:
        return _global_npu_backend[name]
    if "torchair" not in sys.modules:
        from torch_npu.utils._error_code import ErrCode, pta_error

        raise AssertionError(
            "Could not find module torchair. Please check if torchair is removed from sys.modules."
            + pta_error(ErrCode.NOT_FOUND)
        )
    import torchair  # type: ignore[import-not-found]

    _global_npu_backend[name] = torchair.get_npu_backend(compiler_config=config)
    return _global_npu_backend[name]


def _lazy_exec(*args: Any, **options: Any) -> Any:
    return _get_global_npu_backend("npu")(*args, **options)


def _get_default_backend(name: str) -> Callable[..., Any]:
    """The backend behind "npu": torchair's, or one that changes nothing, with a warning, where there is none."""
    if _install_lazy_torchair():
        return _lazy_exec
    from torch_npu.utils.utils import _should_print_warning

    if _should_print_warning():
        warnings.warn(
            f"Register eager implementation for the '{name}' backend of dynamo, as torch_npu was not compiled with "
            "torchair.",
            stacklevel=2,
        )
    return _eager_npu_backend


def _exec(*args: Any, **options: Any) -> Any:
    import npugraph_ex  # type: ignore[import-not-found]

    config = npugraph_ex.CompilerConfig()
    config.mode = NPUGRAPH_EX_BACKEND
    return npugraph_ex.get_npu_backend(compiler_config=config)(*args, **options)


# --- registration ---


def _get_npugraph_ex_backend() -> Callable[..., Any]:
    """The backend. What is in sys.modules stays: the user may have the package loaded, and set something on it."""
    if NPUGRAPH_EX_BACKEND not in sys.modules:
        sys.modules[NPUGRAPH_EX_BACKEND] = _LazyNpuGraphEx(NPUGRAPH_EX_BACKEND)  # type: ignore[assignment]
    return _exec


def _register_npu_backend(backend: Callable[..., Any], name: str = "npu") -> None:
    """Register a backend under a name that torch_npu owns, once.

    Nothing is done if it is registered already, or if torch is about to load it through torch_npu's entry point and
    will register it then. What another package has put there gives way.
    """
    import torch._dynamo
    from torch._dynamo.backends.registry import _BACKENDS, _COMPILER_FNS

    registered, announced = _COMPILER_FNS.get(name), _BACKENDS.get(name)
    if getattr(registered, "__module__", None) == __name__:
        return
    if registered is None and getattr(announced, "module", None) == __name__:
        return
    if registered is not None or announced is not None:
        events.record("replaced", f"backend {name}", f"was {registered or announced!r}")
    _COMPILER_FNS.pop(name, None)
    _BACKENDS.pop(name, None)
    torch._dynamo.register_backend(backend, name)


def _register_backends() -> None:
    """Register all three. npugraphs among them: without the metadata of an installed package torch knows it from here
    only."""
    _register_npu_backend(_get_default_backend("npu"))
    _register_npu_backend(_get_npugraph_ex_backend(), NPUGRAPH_EX_BACKEND)
    _register_npu_backend(_npugraphs_backend_entrypoint, "npugraphs")


def _says_nothing(name: str, value: object) -> bool:
    return value is None or (name == "options" and value == {}) or (name == "mode" and value == "default")


def _set_up() -> None:
    # By name, at the time: it may have been replaced.
    from torch_npu.utils._dynamo import _lazy_dynamo_setup

    _lazy_dynamo_setup()


def _npu_backend_entrypoint(gm: Any, example_inputs: Any, **options: Any) -> Any:
    _set_up()
    return _get_default_backend("npu")(gm, example_inputs, **options)


def _npugraph_ex_backend_entrypoint(gm: Any, example_inputs: Any, **options: Any) -> Any:
    _set_up()
    return _exec(gm, example_inputs, **options)


class _NpugraphsBackendEntryPoint:
    """NPU graphs without Inductor's code. An object, since torch.compiler.reset() looks for `reset` on what is
    registered."""

    compiler_name = "npugraphs"

    def __call__(self, gm: Any, example_inputs: Any, **options: Any) -> Any:
        """Raises TypeError if an option is given."""
        given = [f"{name}={value!r}" for name, value in options.items() if not _says_nothing(name, value)]
        if given:
            raise TypeError(
                f"backend 'npugraphs' takes no options, got {', '.join(given)}; remove them, or choose a backend that "
                "knows them, such as 'inductor'"
            )
        _set_up()
        from torch_npu.utils._dynamo import _lazy_inductor_setup

        _lazy_inductor_setup()
        from torch_npu.utils._graph_tree import NpugraphsBackend

        return NpugraphsBackend()(gm, example_inputs)

    @staticmethod
    def reset() -> None:
        """Give up all graphs; without graph trees there are none."""
        if "torch_npu.npu._graph_tree" in sys.modules:
            import_module("torch_npu.npu._graph_tree").reset_npugraph_trees()  # waits, if its import is under way


_npugraphs_backend_entrypoint = _NpugraphsBackendEntryPoint()


def _patch_npu_trace_rules() -> None:
    """Nothing: a package file that is not lazy calls this, and Dynamo's setup has a step for it."""
