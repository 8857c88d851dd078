"""What the process is to the NPU: no user yet, a user, or a forked child of one, in which each use is refused by name
and all other work goes on. Nothing here runs per operation.
"""

from __future__ import annotations

import atexit as _atexit
import ctypes as _ctypes
import functools as _functools
import os as _os
import sys as _sys
import threading as _threading

import torch as _torch
import torch_npu as _torch_npu
import torch_npu.npu as _this
from torch._C._dynamo import eval_frame as _eval_frame

from torch_npu_lazy.core.trigger import when_imported as _when_imported
from torch_npu_lazy.wheel.aliases import alias as _alias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType as _ModuleType
del TYPE_CHECKING

# torch registers the module by this name, but nothing below it.
_alias("torch.npu", "torch_npu.npu")


# --- no user yet: what torch.accelerator answers without the device ---


def _in_use() -> bool:
    return _this._initialized or hasattr(_this._tls, "is_initializing")


def _answer_until_used(name: str, answer: object) -> None:
    """Have a function of torch._C answer by answer(*args) while the process does not use the NPU, instead of making it
    a user. answer gives None for what the real function shall say. From the first use on it is the real one again."""
    real = getattr(_torch._C, name)
    real = getattr(real, "_npu_real", real)

    @_functools.wraps(real)
    def ask(*args: object) -> object:
        if _in_use():
            setattr(_torch._C, name, real)
            return real(*args)
        known = answer(*args)  # type: ignore[operator]
        return real(*args) if known is None else known

    ask._npu_real = real  # type: ignore[attr-defined]
    # Compiled functions ask on their way in. The real functions have no frames that could be compiled, either.
    _eval_frame.set_code_exec_strategy(ask.__code__, _never_compiled)
    setattr(_torch._C, name, ask)


def _unused_index() -> int | None:
    return 0 if _torch_npu._C._npu_getDeviceCount() > 0 else None


def _unused_stream(index: int) -> _torch.Stream | None:
    if not 0 <= index < _torch_npu._C._npu_getDeviceCount():
        return None
    # The number of a device's default stream is 0.
    return _torch.Stream(stream_id=0, device_index=index, device_type=_PRIVATE_USE_1)


_never_compiled = _eval_frame._FrameExecStrategy(_eval_frame._FrameAction.SKIP, _eval_frame._FrameAction.SKIP)
_PRIVATE_USE_1 = int(_torch._C._autograd.DeviceType.PrivateUse1)


def _stay_unused() -> None:
    """Dynamo asks for both around whatever it compiles, for the CPU, too."""
    _answer_until_used("_accelerator_getDeviceIndex", _unused_index)
    _answer_until_used("_accelerator_getStream", _unused_stream)


_stay_unused()


# --- no NPU at all: fake tensors ---


def _guard_fake_tensors(fake_tensor: _ModuleType) -> None:
    """See to the guard when the first mode is made: before, nobody has asked how many devices there are."""
    mode = fake_tensor.FakeTensorMode
    init = mode.__init__

    @_functools.wraps(init)
    def first(self: object, *args: object, **kwargs: object) -> None:
        if mode.__init__ is first:
            mode.__init__ = init
        _guard_nothing_without_device()
        init(self, *args, **kwargs)

    mode.__init__ = first


def _guard_nothing_without_device() -> None:
    """Where there is no NPU, give its device guard the place of the one that does nothing, that of meta tensors.

    torch's method bindings and the NPU's kernels set a guard for fake tensors, too. The NPU's throws in
    uncheckedSetDevice, which is noexcept: the process ends. torch refuses a second guard, so it is exchanged in torch's
    table. In a build of torch_npu this is a condition in that function.
    """
    if _torch_npu._C._npu_getDeviceCount() > 0:
        return
    path = _os.path.join(_os.path.dirname(_torch.__file__), "lib", "libc10.so")  # noqa: PTH118, PTH120
    types = _torch._C._autograd.DeviceType
    table = (_ctypes.c_void_p * (_PRIVATE_USE_1 + 1)).in_dll(
        _ctypes.CDLL(path), "_ZN3c104impl26device_guard_impl_registryE"
    )
    guard, nothing = table[_PRIVATE_USE_1], table[int(types.Meta)]
    table[_PRIVATE_USE_1] = nothing

    def restore() -> None:
        table[_PRIVATE_USE_1] = guard

    _this._lazy_call(restore)


_when_imported("torch._subclasses.fake_tensor", _guard_fake_tensors)


# --- a CANN that is installed by half ---

_unusable: Exception | None = None
"""What is wrong with the installation; the first use of the NPU raises it."""

_wheels_is_available, _wheels_device_count, _wheels_lazy_init = _this.is_available, _this.device_count, _this._lazy_init


def is_available() -> bool:
    return _unusable is None and _wheels_is_available()


def device_count() -> int:
    return _wheels_device_count() if _unusable is None else 0


def _lazy_init() -> None:
    if _unusable is not None:
        raise RuntimeError(f"the NPU cannot be used: {_unusable}") from _unusable
    _wheels_lazy_init()


# --- a forked child of a user ---

_refused: list[_torch.library.Library] = []


def _refuse(*_: object, **__: object) -> object:
    raise RuntimeError(
        "This process was forked from one that had used the NPU; nothing of the NPU can be used in it, neither what "
        "the parent had made nor anything new. Start processes that use the NPU with the 'spawn' start method, as in "
        "torch.multiprocessing.set_start_method('spawn'), or before the parent's first use of the NPU"
    )


@_functools.cache
def _operators_on_memory() -> list[str]:
    """The NPU's operators that need no new memory: they read what is there or write to it. The others end at the
    allocation."""
    found = []
    for name in _torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1"):
        try:
            schema = _torch._C._get_schema(*name.partition(".")[::2])
        except RuntimeError:  # a kernel whose operator nobody has defined
            continue
        if any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments):
            found.append(name)
    return [
        *found,
        *(f"aten::{name}" for name in ("_copy_from", "_copy_from_and_resize", "_local_scalar_dense", "_pin_memory")),
    ]


def _before_fork() -> None:
    if _this._initialized:
        _operators_on_memory()


def _in_forked_child() -> None:
    # A thread that was about to become a user does not exist here; what it had begun cannot be gone on with.
    begun = _this._initialization_lock.locked()
    _this._initialization_lock = _threading.Lock()
    if begun and not _this._initialized:
        _this._initialized, _this._original_pid = True, _os.getppid()
    # What multiprocessing's hook does, which os.fork does not reach.
    _this._after_fork(None)
    if not _this._is_internal_in_bad_fork or _refused:
        return
    _stay_unused()
    _refuse_everything()


def _refuse_everything() -> None:
    libraries = {}
    for name in _operators_on_memory():
        namespace = name.partition("::")[0]
        if namespace not in libraries:
            libraries[namespace] = _torch.library.Library(namespace, "IMPL", "PrivateUse1")
        # FSDP's have kernels made in Python already.
        libraries[namespace].impl(name, _refuse, allow_override=True)
    _refused.extend(libraries.values())
    for name in ("setDeviceIndex", "setStream", "exchangeDevice", "maybeExchangeDevice", "synchronizeDevice"):
        setattr(_torch._C, f"_accelerator_{name}", _refuse)
    _this.streams._refuse_streams_and_events(_refuse)  # type: ignore[attr-defined]
    _this.NPUGraph.replay = _refuse
    _torch.UntypedStorage._share_npu_ = _refuse  # type: ignore[attr-defined]
    # The end of the process would wait for the parent's streams.
    for home in ("torch_npu._init.core.runtime_lifecycle", "torch_npu"):
        shutdown = getattr(_sys.modules.get(home), "_npu_shutdown", None)
        if shutdown is not None:
            _atexit.unregister(shutdown)


_os.register_at_fork(before=_before_fork, after_in_child=_in_forked_child)
