"""When the NPU's part of Dynamo and Inductor is set up, by whom, once; and what stands in for it until then."""

from __future__ import annotations

import functools
import os
import sys

import torch
import torch_npu
import torch_npu.utils._dynamo as this
from torch_npu_lazy.core import events, locks
from torch_npu_lazy.core.once import Steps, run_once
from torch_npu_lazy.core.trigger import Finder, finder, when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from torch_npu_lazy.core.trigger import Trigger

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"

_DynamoPostImportFinder = Finder
_dynamo_setup = Steps("Dynamo setup")
_COMPLETED_DYNAMO_SETUP_STEPS = _dynamo_setup.completed
_dynamo_trigger: Trigger | None = None


# --- Dynamo setup ---


def _run_dynamo_setup_step(name: str, setup: Callable[[], object]) -> None:
    """Run a step unless it has completed. Raises what it raises."""
    _dynamo_setup.run(name, setup)


@run_once(imports=["torch._dynamo"])
def _dynamo_register_interface_for_device() -> None:
    from torch._dynamo.device_interface import register_interface_for_device
    from torch_npu.utils._dynamo_device import NpuInterface

    for name in ("npu", *(f"npu:{index}" for index in range(32))):
        register_interface_for_device(name, NpuInterface)
    this.register_npu_current_stream_handler()


def _unless_patched(patch: Callable[[], object], owner: Callable[[], object], attribute: str) -> Callable[[], None]:
    """The wheel's patch, safe to repeat: it keeps the original under a name or in a closure, and repeated would call
    itself."""

    def step() -> None:
        if getattr(getattr(owner(), attribute), "__module__", None) != __name__:
            patch()

    return step


def _variables(path: str) -> Callable[[], object]:
    def owner() -> object:
        module, _, name = path.rpartition(".")
        __import__(f"torch._dynamo.variables.{module}")
        return getattr(sys.modules[f"torch._dynamo.variables.{module}"], name)

    return owner


@run_once(imports=["torch._dynamo"], steps=_dynamo_setup)
def add_dynamo_methods_init() -> None:
    """The steps about Dynamo's variables and devices."""
    for name, setup in (
        ("device_interface", _dynamo_register_interface_for_device),
        (
            "user_defined_class_variable",
            _unless_patched(
                this.patch_user_defined_class_variable, _variables("user_defined.UserDefinedClassVariable"), "__new__"
            ),
        ),
        ("stream_event_variable", this.patch_stream_event_variable_python_type),
        ("npu_stream_context", this.patch_npu_stream_context),
        (
            "builtin_variable",
            _unless_patched(this.patch_builtin_variable, _variables("builtin.BuiltinVariable"), "call_id"),
        ),
    ):
        _run_dynamo_setup_step(name, setup)


@run_once(imports=["torch._dynamo"], steps=_dynamo_setup)
def _lazy_dynamo_setup() -> None:
    """Make Dynamo know the NPU. Imports Dynamo, and neither NPU Inductor nor anything of the device.

    Raises what a step raises; the next call goes on with that step.
    """
    from torch_npu._compat.dynamo import compat_patch_dynamo_optimize
    from torch_npu.dynamo import _register_backends
    from torch_npu.dynamo.trace_rule import _patch_npu_trace_rules

    add_dynamo_methods_init()
    _run_dynamo_setup_step("backends", _register_backends)
    _run_dynamo_setup_step("trace_rules", _patch_npu_trace_rules)
    _run_dynamo_setup_step("graphsafe_rng", this.register_npu_graphsafe_rng)
    _run_dynamo_setup_step("dynamo_optimize", compat_patch_dynamo_optimize)


def _install_dynamo_post_import_trigger() -> None:
    """Set Dynamo up whenever it is first imported, or now if it has been."""
    global _dynamo_trigger  # noqa: PLW0603
    if _dynamo_trigger is None:
        _dynamo_trigger = when_imported("torch._dynamo", _set_up_or_hold_back, again=_patch_package_again)
        _look_when_a_config_is_made()


def _set_up_or_hold_back(module: ModuleType) -> None:
    """Set Dynamo up. If that fails Dynamo can be imported all the same; what captures a graph tries again, and raises
    the cause while there is one."""
    del module
    try:
        # By name, at the time: it may have been replaced.
        _lazy_dynamo_setup()
    except BaseException:
        _hold_captures_back()
        raise
    _let_captures_through()


def _patch_package_again(module: ModuleType) -> None:
    """A reload has put back what torch has on the package itself."""
    del module
    from torch_npu._compat.dynamo import compat_patch_dynamo_optimize

    if _lazy_dynamo_setup.has_run:
        compat_patch_dynamo_optimize()


def _look_when_a_config_is_made() -> None:
    """A finder put in front of ours, that answers for all of torch, hides Dynamo's import and all imports in it. But
    Dynamo's body makes a configuration, whichever way it comes."""
    from torch.utils._config_module import ConfigModule

    @classmethod
    def look(cls: type) -> None:
        del cls
        finder.notice()

    ConfigModule.__init_subclass__ = look  # type: ignore[assignment]


_ENTRANCES = (
    ("torch._dynamo.eval_frame", "optimize"),
    ("torch._dynamo.eval_frame", "optimize_assert"),
    ("torch._dynamo.eval_frame", "export"),
    ("torch._dynamo", "optimize"),
    ("torch._dynamo", "optimize_assert"),
    ("torch._dynamo", "export"),
    ("torch.export._trace", "_export"),
)
"""What every capture goes through, looked up where it is called: below torch.compile and torch.export.export, which
stay what they are."""


def _hold_captures_back() -> None:
    for home, name in _ENTRANCES:
        if home == "torch.export._trace" and home not in sys.modules:
            when_imported(home, lambda _, name=name: _hold_back("torch.export._trace", name))
        else:
            _hold_back(home, name)


def _hold_back(home: str, name: str) -> None:
    """Put a function in a capture's way that sets up first."""
    module, trigger = sys.modules.get(home), _dynamo_trigger
    real = getattr(module, name, None)
    if real is None or hasattr(real, "_npu_held_back") or trigger is None or trigger.settled:
        return

    @functools.wraps(real)
    def held_back(*args: Any, **kwargs: Any) -> Any:
        trigger.ensure()
        current = getattr(module, name)
        # Still this one inside a circle: a step of the setup itself captures something.
        return (real if current is held_back else current)(*args, **kwargs)

    held_back._npu_held_back = real  # type: ignore[attr-defined]
    setattr(module, name, held_back)


def _let_captures_through() -> None:
    for home, name in _ENTRANCES:
        module = sys.modules.get(home)
        real = getattr(getattr(module, name, None), "_npu_held_back", None)
        if real is not None:
            setattr(module, name, real)


# --- Inductor setup ---


@run_once(imports=["torch._dynamo", "torch._inductor.config"])
def _inject_inductor_npu_backend_config() -> None:
    """Give torch._inductor.config its NPU keys."""
    torch._inductor.config.get_config_copy()  # type: ignore[attr-defined]


@run_once(imports=["torch._dynamo"])
def _lazy_inductor_setup() -> None:
    """Make Inductor know the NPU: NPU Inductor, graph trees, configuration keys."""
    from torch_npu.utils._graph_tree import _apply_npugraph_tree_methods

    this.register_inductor_npu()
    _apply_npugraph_tree_methods()
    _inject_inductor_npu_backend_config()


_values_before: list[str | None] = []
"""The variable before each of the scopes that a thread is in, outermost first. One list for all: scopes in generators
may end out of order, and the variable has to be the user's after the last."""


class _PutBack:
    """In a child that another thread's scope was forked into, nobody else puts the user's value back."""

    def after_fork(self, survivor: int) -> None:
        if _values_before and _scope_lock.owner != survivor:
            _put_back(_values_before[0])
            _values_before.clear()


# Before the lock, which forgets in a child who had it.
locks.at_fork(_PutBack())
_scope_lock = locks.ScopeLock("the NPU backend scope")


# Both run for each compiled call, and get() and pop() of os.environ take as long as all the rest.


def _chosen() -> str | None:
    try:
        return os.environ[VARIABLE]
    except KeyError:
        return None


def _put_back(value: str | None) -> None:
    if value is not None:
        os.environ[VARIABLE] = value
        return
    try:
        del os.environ[VARIABLE]
    except KeyError:
        return


class _NpuBackendScope:
    """The code generator of one compilation, in the environment of the process, where NPU Inductor looks for it.

    One thread at a time is inside; scopes of one thread nest. The variable is as it was afterwards, whatever happens,
    and in a child that another thread's scope was forked into. Raises TypeError if the name is no string, and what
    loading NPU Inductor raises.
    """

    __slots__ = ("backend",)

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __enter__(self) -> _NpuBackendScope:
        _scope_lock.__enter__()
        old = _chosen()
        # Noted before anything changes, since a fork may come at any time.
        _values_before.append(old)
        try:
            if old != self.backend:
                os.environ[VARIABLE] = self.backend
            this.register_inductor_npu()
            _lazy_inductor_setup()
            if self.backend == "ascendc":
                from torch_npu._inductor.deterministic_cache import patch_npu_deterministic_level_cache_keys

                patch_npu_deterministic_level_cache_keys()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> bool:
        old = _values_before[-1]
        try:
            # It is most often what it was.
            if old != self.backend or _chosen() != old:
                _put_back(old)
        finally:
            _values_before.pop()
            _scope_lock.__exit__()
        return False


# --- torch's wrapper of Inductor ---


def patch_inductor_wrapper() -> None:
    """Have torch's wrapper of Inductor set the NPU up: Dynamo when it is made, NPU Inductor when it is first called."""
    from torch import _TorchCompileInductorWrapper as Wrapper
    from torch.utils._config_module import ConfigModule

    apply_options, init, call = Wrapper.apply_options, Wrapper.__init__, Wrapper.__call__
    get_config_copy = ConfigModule.get_config_copy

    @functools.wraps(apply_options)
    def new_apply_options(self: Any, options: dict[str, Any] | None) -> None:
        _refuse_contradictions(options or {})
        apply_options(self, options)
        if not options or not self.config.get("enable_shape_handling", False):
            return
        if hasattr(self, "_npu_shape_handling_requested"):
            self._npu_shape_handling_requested = True
        else:
            this._patch_shape_handling()

    @functools.wraps(init)
    def new_init(self: Any, *args: Any, **kwargs: Any) -> None:
        self._npu_shape_handling_requested = False
        try:
            init(self, *args, **kwargs)
            shape_handling_requested = self._npu_shape_handling_requested
        finally:
            del self._npu_shape_handling_requested
        _lazy_dynamo_setup()
        # Before torch makes Dynamo's context, so not at the first call.
        if shape_handling_requested:
            this._patch_shape_handling()
        backend = this._resolve_npu_backend_from_wrapper(self)
        if backend in ("mlir", "dvm"):
            with _NpuBackendScope(backend):
                this.log.info("Running %s backend", backend)
                if backend == "mlir":
                    torch_npu._C._recovery_all_npu_stream(torch_npu.npu.current_device())

    @functools.wraps(call)
    def new_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        patches = kwargs and kwargs.get("config_patches")
        if patches and "npu_backend" in patches:
            backend = this._resolve_npu_backend(patches["npu_backend"])
        else:
            backend = this._resolve_npu_backend_from_wrapper(self)
        with _NpuBackendScope(backend):
            if backend == "ascendc":
                from torch_npu.dynamo._deterministic_guard import install_npu_deterministic_level_guard

                install_npu_deterministic_level_guard()
            try:
                return call(self, *args, **kwargs)
            except Exception as error:
                if _lacks_triton(backend, error):
                    raise ImportError(
                        "Inductor makes its kernels for the NPU with triton-ascend, which is not installed here: pip "
                        "install triton-ascend, or choose another backend, such as 'npugraphs' or 'aot_eager'"
                    ) from error
                raise

    @functools.wraps(get_config_copy)
    def new_get_config_copy(self: Any) -> dict[str, Any]:
        if self is sys.modules.get("torch._inductor.config"):
            _add_config_keys(self)
        return get_config_copy(self)

    Wrapper.apply_options, Wrapper.__init__, Wrapper.__call__ = new_apply_options, new_init, new_call
    ConfigModule.get_config_copy = new_get_config_copy
    when_imported("torch._inductor.config", _add_config_keys, again=_add_config_keys)


def _refuse_contradictions(options: dict[str, Any]) -> None:
    """torch takes either spelling of an option and lets the last one win."""
    for spelt, value in options.items():
        name = spelt.replace("-", "_")
        if name != spelt and name in _CONFIG_KEYS and name in options and options[name] != value:
            raise RuntimeError(
                f"Options {spelt}={value!r} and {name}={options[name]!r} are one setting with two values; give it once"
            )


def _lacks_triton(backend: str, error: Exception) -> bool:
    """Whether an error is what Inductor says of a device that nothing generates code for, for want of Triton: NPU
    Inductor registers no code generator then, and says why in a warning only."""
    from torch.utils._triton import has_triton_package

    return backend not in ("mlir", "dvm") and "Device npu not supported" in str(error) and not has_triton_package()


_CONFIG_KEYS: dict[str, tuple[object, type]] = {
    "npu_backend": ("default", str),
    "enable_shape_handling": (False, bool),
    "shape_handling_configs": ([], list),
    "shape_handling_dict": (None, dict),
}
"""The NPU's keys of torch._inductor.config: default and type."""


def _add_config_keys(config: Any) -> None:
    from torch.utils._config_module import Config, _ConfigEntry

    for name, (default, kind) in _CONFIG_KEYS.items():
        if name not in config._config:
            config._config[name] = _ConfigEntry(Config(default=default, value_type=kind), name=name)


def install_npugraph_mark_step_trigger() -> None:
    """Offer torch.compiler.npugraph_mark_step_begin without a compiler."""

    # Without annotations: its signature is public, and has none.
    def npugraph_mark_step_begin():
        from torch_npu.npu._graph_tree_state import mark_step_begin

        mark_step_begin()

    torch.compiler.npugraph_mark_step_begin = npugraph_mark_step_begin  # type: ignore[attr-defined]


events.record("overlay", __name__)
