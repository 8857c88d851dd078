"""When the NPU's part of Dynamo and Inductor is set up, by whom, once; and what is in its place until then.

Usable before the wheel's body has been executed, which loads Dynamo where a release is not lazy: what the wheel defines
is looked up when a step runs. Which steps there are, the release profile says.
"""

from __future__ import annotations

import functools
import logging
import sys
from importlib import import_module

import torch
import torch_npu
import torch_npu.utils._dynamo as this
from torch_npu.utils._backend_scope import _NpuBackendScope, chosen  # type: ignore[import-not-found]
from torch_npu_lazy.core import events
from torch_npu_lazy.core.layers import has_layer, wrap
from torch_npu_lazy.core.once import Steps, run_once
from torch_npu_lazy.core.trigger import Finder, finder, when_imported
from torch_npu_lazy.profiles.steps import perform
from torch_npu_lazy.wheel import bootstrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from torch_npu_lazy.core.trigger import Trigger
    from torch_npu_lazy.profiles import Profile

_DynamoPostImportFinder = Finder
_dynamo_setup = Steps("Dynamo setup")
_COMPLETED_DYNAMO_SETUP_STEPS = _dynamo_setup.completed
_dynamo_trigger: Trigger | None = None
log = logging.getLogger(__name__)
use_jit_script = False


# --- Dynamo setup ---


def _run_dynamo_setup_step(name: str, setup: Callable[[], object]) -> None:
    """Run a step unless it has completed. Raises what it raises."""
    _dynamo_setup.run(name, setup)


@run_once(imports=["torch._dynamo"])
def _dynamo_register_interface_for_device() -> None:
    """Register the NPU's interface under all its names, or, if it fails, under none. One of the user's own stays, and
    answers for the names that he has left out, too."""
    from torch._dynamo.device_interface import device_interfaces
    from torch_npu.utils._dynamo_device import NpuInterface

    users = users_interfaces()
    interface = users.get("npu", NpuInterface)
    names = ("npu", *(f"npu:{index}" for index in range(32)))
    # At once, where torch's function takes one name after the other.
    device_interfaces.update({**dict.fromkeys(names, interface), **users})
    if users:
        events.record("kept", "device interface", ", ".join(f"{name} is {each!r}" for name, each in users.items()))


def register_interface_for_device(device: str, interface: type) -> None:
    """What code generators that have an interface of their own get in place of torch's function: the user's stays."""
    from torch._dynamo.device_interface import device_interfaces

    if device not in users_interfaces():
        device_interfaces[device] = interface


def users_interfaces() -> dict[str, type]:
    """By name, the interfaces of NPUs that are not torch_npu's own."""
    from torch._dynamo.device_interface import device_interfaces

    return {
        name: interface
        for name, interface in list(device_interfaces.items())
        if name.partition(":")[0] == "npu" and not interface.__module__.startswith("torch_npu.")
    }


def _profile() -> Profile:
    assert bootstrap.profile is not None
    return bootstrap.profile


@run_once(imports=["torch._dynamo"], steps=_dynamo_setup)
def add_dynamo_methods_init() -> None:
    """The steps about Dynamo's variables and devices: those before the backends."""
    for name, actions in _profile().dynamo.items():
        if name == "backends":
            return
        _run_dynamo_setup_step(name, functools.partial(perform, actions))


@run_once(imports=["torch._dynamo"], steps=_dynamo_setup)
def _lazy_dynamo_setup() -> None:
    """Make Dynamo know the NPU. Imports Dynamo, and neither NPU Inductor nor anything of the device.

    Raises what a step raises; the next call goes on with that step.
    """
    # The wheel's modules that load Dynamo, where they have been kept out until now.
    bootstrap.load("torch._dynamo")
    add_dynamo_methods_init()
    for name, actions in _profile().dynamo.items():
        _run_dynamo_setup_step(name, functools.partial(perform, actions))


def patch_dynamo_optimize() -> None:
    """Have torch._dynamo.optimize with backend "npu" prepare torchair before the model runs. Wraps it once, wherever
    torch keeps it: a reload of torch._dynamo takes it from its home again, and pickle looks for it there. The wrapper
    shows torch's own name, home and signature."""
    import torch._dynamo.eval_frame as home

    wrap(home, "optimize", _npu_backend_first)
    torch._dynamo.optimize = home.optimize


def _npu_backend_first(optimize: Any) -> Any:
    @functools.wraps(optimize)
    def first(*args: Any, **kwargs: Any) -> Any:
        backend = kwargs["backend"] if "backend" in kwargs else args[0] if args else None
        if isinstance(backend, torch._TorchCompileWrapper):
            backend = backend.compiler_name
        if isinstance(backend, str) and backend == "npu":
            import_module("torch_npu.dynamo")._get_global_npu_backend(backend)
        return optimize(*args, **kwargs)

    return first


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
    if "dynamo_optimize" in _dynamo_setup.completed:
        patch_dynamo_optimize()


def _look_when_a_config_is_made() -> None:
    """A finder put in front of ours, that answers for all of torch, hides Dynamo's import and all imports in it. But
    Dynamo's body makes a configuration, whichever way it comes."""
    from torch.utils._config_module import ConfigModule

    earlier: Any = vars(ConfigModule).get("__init_subclass__")
    if has_layer(earlier, _look_when_a_config_is_made):
        return

    @classmethod
    def look(cls: type[ConfigModule], **given: Any) -> None:
        finder.notice()
        rest = super(ConfigModule, cls).__init_subclass__ if earlier is None else earlier.__get__(None, cls)
        rest(**given)

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
    register_inductor_npu()
    bootstrap.load("torch_npu.utils._graph_tree")
    from torch_npu.utils._graph_tree import _apply_npugraph_tree_methods

    _apply_npugraph_tree_methods()
    for actions in _profile().inductor.values():
        perform(actions)
    _inject_inductor_npu_backend_config()


class _InductorNpuRegistry:
    """Which code generator NPU Inductor has been loaded with, and whether it may be."""

    _disabled_register = False
    _loaded_backend: str | None = None

    @classmethod
    def register_inductor_npu(cls) -> None:
        """Load NPU Inductor with the generator that the environment names, unless it is loaded with that one."""
        if cls._disabled_register:
            return
        wanted = chosen("default")
        if cls._loaded_backend != wanted:
            # Loading begins with taking back what is loaded: if it fails there is none.
            cls._loaded_backend = None
            there = "torch_npu._inductor" in sys.modules
            # Also where it is there: another thread's import of it may be under way.
            package: Any = import_module("torch_npu._inductor")
            # The package's body loads the generator itself.
            if there:
                package._load_backend()
            cls._loaded_backend = wanted

    @classmethod
    def disable_register(cls) -> None:
        cls._disabled_register = True

    @classmethod
    def enable_register(cls) -> None:
        cls._disabled_register = False

    @classmethod
    def has_initialized(cls) -> bool:
        return cls._loaded_backend is not None


def is_inductor_npu_initialized() -> bool:
    return _InductorNpuRegistry.has_initialized()


def disable_register_inductor_npu() -> None:
    _InductorNpuRegistry.disable_register()


def enable_register_inductor_npu() -> None:
    _InductorNpuRegistry.enable_register()


def register_inductor_npu() -> None:
    _InductorNpuRegistry.register_inductor_npu()


def _resolve_npu_backend(selected_backend: str | None = None) -> str:
    """The code generator of a compile: its own option's, else the configuration's, else the environment's."""
    unset = (None, "", "default")
    if selected_backend not in unset:
        return selected_backend  # type: ignore[return-value]
    configured = getattr(sys.modules.get("torch._inductor.config"), "npu_backend", None)
    return configured if configured not in unset else chosen("default")


def _resolve_npu_backend_from_wrapper(wrapper: Any) -> str:
    return _resolve_npu_backend(wrapper.config.get("npu_backend"))


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
        backend = _resolve_npu_backend_from_wrapper(self)
        if backend in ("mlir", "dvm"):
            with _NpuBackendScope(backend):
                log.info("Running %s backend", backend)
                if backend == "mlir":
                    torch_npu._C._recovery_all_npu_stream(torch_npu.npu.current_device())

    @functools.wraps(call)
    def new_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        patches = kwargs and kwargs.get("config_patches")
        if patches and "npu_backend" in patches:
            backend = _resolve_npu_backend(patches["npu_backend"])
        else:
            backend = _resolve_npu_backend_from_wrapper(self)
        with _NpuBackendScope(backend):
            return call(self, *args, **kwargs)

    @functools.wraps(get_config_copy)
    def new_get_config_copy(self: Any) -> dict[str, Any]:
        if self is sys.modules.get("torch._inductor.config"):
            _add_config_keys(self)
        return get_config_copy(self)

    for owner, name, new in (
        (Wrapper, "apply_options", new_apply_options),
        (Wrapper, "__init__", new_init),
        (Wrapper, "__call__", new_call),
        (ConfigModule, "get_config_copy", new_get_config_copy),
    ):
        if not has_layer(getattr(owner, name), patch_inductor_wrapper):
            setattr(owner, name, new)
    when_imported("torch._inductor.config", _add_config_keys, again=_add_config_keys)
    when_imported("torch._inductor.compile_fx", _patch_other_ways_in, again=_patch_other_ways_in)


def _patch_other_ways_in(compile_fx: Any) -> None:
    """Have a compile that does not come through the wrapper (a backend of the user's own, a package made ahead of
    time) find NPU Inductor, too. All ways meet behind compile_fx, which programs have bound by name."""
    wrap(compile_fx, "_maybe_wrap_and_compile_fx_main", _in_scope)


def _in_scope(compile_main: Any) -> Any:
    @functools.wraps(compile_main)
    def in_scope(*args: Any, **kwargs: Any) -> Any:
        with _NpuBackendScope(_resolve_npu_backend()):
            return compile_main(*args, **kwargs)

    return in_scope


def _refuse_contradictions(options: dict[str, Any]) -> None:
    """torch takes either spelling of an option and lets the last one win."""
    for spelt, value in options.items():
        name = spelt.replace("-", "_")
        if name != spelt and name in _CONFIG_KEYS and name in options and options[name] != value:
            raise RuntimeError(
                f"Options {spelt}={value!r} and {name}={options[name]!r} are one setting with two values; give it once"
            )


_CONFIG_KEYS: dict[str, tuple[object, type]] = {"npu_backend": ("default", str)}
"""The NPU's keys of torch._inductor.config: default and type."""

if _profile().shape_handling:
    _CONFIG_KEYS |= {
        "enable_shape_handling": (False, bool),
        "shape_handling_configs": ([], list),
        "shape_handling_dict": (None, dict),
    }


def _add_config_keys(config: Any) -> None:
    missing = [name for name in _CONFIG_KEYS if name not in config._config]
    if not missing:
        # Each copy of the configuration asks, and each wrapper of Inductor makes some.
        return
    from inspect import signature

    from torch.utils._config_module import Config, _ConfigEntry

    named = "name" in signature(_ConfigEntry).parameters
    for name in missing:
        default, kind = _CONFIG_KEYS[name]
        entry = _ConfigEntry(Config(default=default, value_type=kind), **({"name": name} if named else {}))
        # Not over the value of somebody who has come between.
        config._config.setdefault(name, entry)


def install_npugraph_mark_step_trigger() -> None:
    """Offer torch.compiler.npugraph_mark_step_begin without a compiler."""

    # Without annotations: its signature is public, and has none.
    def npugraph_mark_step_begin():
        from torch_npu.npu._graph_tree_state import mark_step_begin

        mark_step_begin()

    torch.compiler.npugraph_mark_step_begin = npugraph_mark_step_begin  # type: ignore[attr-defined]


def patch_stream_operators() -> None:
    """Have the operators that a captured graph has for streams and events find an NPU's streams as objects of the NPU's
    class: torch's refuse the events of releases in which these name no device. Safe to repeat."""
    from torch._dynamo.variables import streams

    wrap(streams, "_get_stream_by_index", _npu_stream_by_index)


def _npu_stream_by_index(look_up: Callable[[int], torch.Stream]) -> Callable[[int], torch.Stream]:
    from torch_npu.npu.streams import _npu_stream

    def stream_by_index(index: int) -> torch.Stream:
        stream = look_up(index)
        return _npu_stream(stream) if stream.device.type == "npu" else stream

    return stream_by_index


# --- has_triton ---


@functools.lru_cache(None)
def has_triton(*, include_cpu: bool = _profile().cpu_counts_for_triton) -> bool:
    """Whether Triton can be used on some device here, the NPU among them. Asks no device for its properties.

    include_cpu: whether a CPU that Triton has a backend for counts.
    """
    from torch.utils._triton import has_triton_package

    if not has_triton_package():
        return False
    _dynamo_register_interface_for_device()
    from torch._dynamo.device_interface import get_interface_for_device

    if any(get_interface_for_device(device).is_available() for device in ("cuda", "xpu")):
        return True
    if get_interface_for_device("npu").is_available() and not _is_community_triton():
        return True
    if not include_cpu or not get_interface_for_device("cpu").is_available():
        return False
    import triton.backends  # type: ignore[import-not-found]

    return "cpu" in triton.backends.backends


def _never_on_an_npu(supports_tma: Callable[[], bool]) -> Callable[[], bool]:
    """torch asks a GPU for its capability, to know whether it has tensor memory access. With transfer_to_npu the NPU
    answers for the GPU, and has none to tell."""

    @functools.wraps(supports_tma)
    def aware() -> bool:
        is_npu = torch.version.cuda is None and torch.cuda.is_available()
        return not is_npu and supports_tma()

    return aware


def _is_community_triton() -> bool:
    """Whether the installed Triton is the one that knows no NPU. It shares its import name with triton-ascend."""
    from importlib.util import find_spec

    try:
        return find_spec("triton.backends.ascend") is None
    except (ModuleNotFoundError, ValueError):
        # No package of backends at all: something else by that name, of which nothing is known.
        return False


def patch_has_triton() -> None:
    """Put it in place, also where torch or NPU Inductor have bound another one."""
    from torch.utils import _triton

    _triton.has_triton = has_triton
    if hasattr(_triton, "_device_supports_tma"):
        wrap(_triton, "_device_supports_tma", _never_on_an_npu)
    for name in ("torch._inductor.compile_fx", "torch._inductor.scheduler"):
        if name in sys.modules:
            sys.modules[name].has_triton = has_triton  # type: ignore[attr-defined]


# --- compile workers ---


def _leave_the_device_to_workers(pool: ModuleType) -> None:
    """Keep torch_npu out of the helper that forks Inductor's compile workers. There torch asks every known device for
    its properties, and then no worker can use the NPU, as the wheel does before it compiles several configurations of a
    kernel. A worker loads torch_npu with its first kernel."""
    wrap(pool, "python_subprocess_env", _without_autoload)


def _without_autoload(environment: Callable[[], dict[str, str]]) -> Callable[[], dict[str, str]]:
    @functools.wraps(environment)
    def without_autoload() -> dict[str, str]:
        return {**environment(), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}

    return without_autoload


# --- at import ---


def add_dynamo_methods() -> None:
    """What `import torch_npu` does about compilers: everything waits for its time."""
    from torch_npu.dynamo import _get_npugraph_ex_backend, _install_lazy_torchair

    patch_has_triton()
    _install_lazy_torchair()
    _install_dynamo_post_import_trigger()
    _get_npugraph_ex_backend()
    patch_inductor_wrapper()
    install_npugraph_mark_step_trigger()
    workers = "torch._inductor.compile_worker.subproc_pool"
    when_imported(workers, _leave_the_device_to_workers, again=_leave_the_device_to_workers)
