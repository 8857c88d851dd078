"""What a launcher does, learnt by running it with symbols, and the plan that does the same."""

from __future__ import annotations

import os
import struct
from types import FunctionType, SimpleNamespace
from typing import NamedTuple

from .kinds import KINDS, Layout, kind_of, pack
from .symbols import NotArithmetic, Program, Symbol, greatest, least, program_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_BEFORE_ARGUMENTS = 9
"""What Triton's host code is called with before the kernel's arguments: grid, stream, handle, metadata, hooks."""
_TRITONS_OWN_MEMORY = 216 * 1024
"""Bytes that Triton's host code gives a SIMT kernel whose metadata names none."""
_SWITCHES = {
    "TRITON_DEVICE_PRINT": "launcher_device_print_required",
    "TRITON_REGISTER_TENSOR_MSPROF": "launcher_registers_tensors",
    "TRITON_COMPILE_ONLY": "launcher_compiles_only",
    "TRITON_GRID_WARN_PRINT": "launcher_warns_of_grids",
    "TRITON_ALL_BLOCKS_PARALLEL": "launcher_maps_blocks",
}
"""What has Triton's host code do more than launch."""


class Unplannable(Exception):
    """A launcher can have no plan: `reason` for ever, unless `stable` is False."""

    def __init__(self, reason: str, *, stable: bool = True) -> None:
        super().__init__(reason)
        self.reason, self.stable = reason, stable


class Launch(NamedTuple):
    """What one call of a launcher comes down to."""

    name: str
    function: int
    binary: Any
    grid: list[Program]
    kinds: list[str]
    sources: list[Any]
    """For each packed argument the symbol or value that it is."""
    ffts: bool
    pure_simt: bool
    dynamic_memory: int
    """Bytes that a SIMT kernel on the newer chips is launched with, -1 for every other kernel."""


def parameters(launcher: Any) -> tuple[str, ...]:
    """The names of a launcher's arguments without the stream. Raises Unplannable."""
    code = getattr(launcher, "__code__", None)
    if code is None or not isinstance(getattr(launcher, "__globals__", None), dict):
        raise Unplannable("launcher_unknown")
    names = code.co_varnames[: code.co_argcount]
    if not names or names[-1] != "stream" or "runner" not in code.co_names:
        raise Unplannable("launcher_unknown")
    return names[:-1]


def describe(launcher: Any) -> Launch:
    """What a launcher does, whatever its arguments. Raises Unplannable."""
    count = len(parameters(launcher))
    asked: list[tuple[Any, ...]] = []
    scope = {
        **launcher.__globals__,
        "runner": lambda *given: asked.append(given),
        "bin": SimpleNamespace(launch_metadata=lambda *_: None),
        "min": least,
        "max": greatest,
    }
    try:
        FunctionType(launcher.__code__, scope)(*map(Symbol.argument, range(count)), object())
    except NotArithmetic as what:
        raise Unplannable(f"grid_not_arithmetic:{what}") from None
    except Exception as error:  # a launcher of somebody's, which does what it likes
        raise Unplannable(f"launcher_raises:{type(error).__name__}") from error
    if len(asked) != 1 or len(asked[0]) < _BEFORE_ARGUMENTS:
        raise Unplannable("launcher_unknown")
    binary = launcher.__globals__.get("bin")
    if binary is None:
        raise Unplannable("kernel_stub_owner_missing")
    given = asked[0]
    name = _kernel_name(given[5])
    function = _handle(given[4])
    _refuse_what_needs_more(binary.metadata)
    kinds, sources = _packed(binary.src, given[_BEFORE_ARGUMENTS:])
    metadata = binary.metadata
    pure_simt = bool(getattr(metadata, "force_simt_only", False) or getattr(metadata, "is_pure_simt", False))
    simt = pure_simt or "simt" in str(getattr(metadata, "parallel_mode", "")).lower()
    newer = bool(getattr(metadata, "compile_on_910_95", False))
    return Launch(
        name=name,
        function=function,
        binary=binary,
        grid=[program_of(size) for size in given[:3]],
        kinds=kinds,
        sources=sources,
        ffts=_has_ffts(),
        pure_simt=pure_simt,
        dynamic_memory=_dynamic_memory(metadata) if simt and newer else -1,
    )


def plan(native: Any, launch: Launch, arguments: int, fixed: tuple[Any, ...], device: int) -> Any:
    """The C++ plan for calls with so many arguments, behind which come those that never change.

    Raises Unplannable.
    """
    layout = Layout(launch.kinds, ffts=launch.ffts, pure_simt=launch.pure_simt)
    image, slots = bytearray(layout.size), []
    if layout.ffts is not None:
        try:
            struct.pack_into("<Q", image, layout.ffts, native.sync_address())
        except RuntimeError as error:
            raise Unplannable(f"plan_creation_error:{error}", stable=False) from error
    for position, (kind, source, offset) in enumerate(zip(launch.kinds, launch.sources, layout, strict=True)):
        if isinstance(source, Symbol):
            index = source.index
            if index is None:
                raise Unplannable(f"argument_is_computed:{position}")
            if index < arguments:
                slots.append((KINDS.index(kind), index, offset))
                continue
            constant = fixed[index - arguments]
        else:
            constant = source
        if kind == "tensor":
            raise Unplannable("fixed_tensor_arg_unsupported")
        try:
            value = pack(kind, constant)
        except (struct.error, TypeError, ValueError):
            raise Unplannable(f"runtime_arg_category_mismatch:{position}:{kind}") from None
        image[offset : offset + len(value)] = value
    grid = [_with_fixed(program, arguments, fixed) for program in launch.grid]
    try:
        return native.make_plan(
            *(launch.name, launch.function, device, bytes(image), slots, grid, layout.grid, arguments),
            *(launch.dynamic_memory, launch.binary),
        )
    except (ValueError, RuntimeError, OverflowError) as error:
        raise Unplannable(f"plan_creation_error:{error}") from error


def _with_fixed(program: Program, arguments: int, fixed: tuple[Any, ...]) -> Program:
    constant, argument = program_of(0)[0][0], Symbol.argument(0).program[0][0]
    return [
        (constant, fixed[value - arguments]) if step == argument and value >= arguments else (step, value)
        for step, value in program
    ]


def hooks(launcher: Any) -> tuple[bool, list[list[Any]]]:
    """Whether a launch hook is there, and the lists which must stay empty for that to stay so."""
    chains: list[list[Any]] = []
    active = False
    for name in ("launch_enter_hook", "launch_exit_hook"):
        hook = getattr(launcher, "__globals__", {}).get(name)
        calls = getattr(hook, "calls", None)
        # Newer Triton keeps a chain there, empty or not.
        if type(hook).__name__ == "HookChain" and isinstance(calls, list):
            chains.append(calls)
            active |= bool(calls)
        else:
            active |= hook is not None
    return active, chains


def _kernel_name(metadata: Any) -> str:
    name = metadata.get("kernel_name") if isinstance(metadata, dict) else getattr(metadata, "kernel_name", None)
    if not isinstance(name, str) or not name:
        raise Unplannable("kernel_name_missing")
    return name


def _handle(function: Any) -> int:
    value = getattr(function, "value", function)
    if isinstance(value, bool) or not isinstance(value, int) or value == 0:
        raise Unplannable("kernel_stub_unsupported")
    return value


def _refuse_what_needs_more(metadata: Any) -> None:
    for variable, reason in _SWITCHES.items():
        if os.environ.get(variable, "").lower() in ("1", "true"):
            raise Unplannable(reason)
    if os.environ.get("TRITON_ENABLE_TASKQUEUE", "true").lower() not in ("1", "true"):
        raise Unplannable("launcher_without_task_queue")
    for name, reason in (
        ("workspace_size", "launcher_workspace_required"),
        ("lock_num", "launcher_sync_block_lock_required"),
    ):
        if int(getattr(metadata, name, None) or 0) > 0:
            raise Unplannable(reason)


def _packed(source: Any, arguments: tuple[Any, ...]) -> tuple[list[str], list[Any]]:
    """Kinds and values of what is packed: the signature without its constants."""
    names = list(source.fn.arg_names)
    constants = {_position(key, names) for key in getattr(source, "constants", {})}
    signature = [(_position(key, names), each) for key, each in source.signature.items()]
    if len(signature) != len(arguments):
        raise Unplannable(f"launcher_schema_conflict:{len(arguments)}:{len(signature)}")
    kinds, values = [], []
    for (position, each), value in zip(signature, arguments, strict=True):
        if position in constants:
            continue
        kind = kind_of(each)
        if kind is None:
            raise Unplannable("arg_kinds_unsupported")
        kinds.append(kind)
        values.append(value)
    return kinds, values


def _position(key: Any, names: list[str]) -> int:
    if isinstance(key, tuple):
        (key,) = key
    return names.index(key) if isinstance(key, str) else int(key)


def _has_ffts() -> bool:
    from triton.backends.ascend import utils  # type: ignore[import-not-found]

    try:
        return bool(utils.is_ffts_supported(utils.get_ascend_arch_from_env()) and not utils.force_disable_ffts())
    except AttributeError:
        raise Unplannable("launcher_ffts_abi_unknown") from None


def _dynamic_memory(metadata: Any) -> int:
    given = getattr(metadata, "shared_mem_dynamic_size", None)
    return _TRITONS_OWN_MEMORY if given is None else int(given)


def kinds_of_arguments(launch: Launch) -> Mapping[int, str]:
    """The kind of each argument of the launcher that is packed, by its position."""
    return {
        source.index: kind
        for kind, source in zip(launch.kinds, launch.sources, strict=True)
        if isinstance(source, Symbol) and source.index is not None
    }
