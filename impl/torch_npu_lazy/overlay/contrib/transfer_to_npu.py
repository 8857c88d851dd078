"""What the body of transfer_to_npu meets in place of the compiler and of the program's warning filters.

The body imports modules of Dynamo and Inductor only to replace names in them, and replaces them at once. Here its
import statements are answered, what it assigns is written down, and that is done when those modules are imported.
"""

from __future__ import annotations

import builtins as _builtins
import functools as _functools
import sys as _sys
import warnings as _warnings

import torch as _torch
import torch_npu.contrib.transfer_to_npu as _this
from torch._C._dynamo import eval_frame as _eval_frame

from torch_npu_lazy.core.trigger import when_imported as _when_imported
from torch_npu_lazy.wheel import patching as _patching
from torch_npu_lazy.wheel import redirects as _redirects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

_COMPILERS = ("torch._dynamo", "torch._inductor")
_imported: list[str] = []
"""The modules that the body has imported, as far as it knows."""

_assigned: list[tuple[str, str, object]] = []
"""What it has assigned: path of the owner, name, value."""


# --- while the body runs ---


def _disable(function: Callable[..., Any]) -> Callable[..., Any]:
    """torch._dynamo.disable without Dynamo: neither the function nor what it calls is ever compiled."""

    @_functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    skip = _eval_frame._FrameAction.SKIP
    _eval_frame.set_code_exec_strategy(call.__code__, _eval_frame._FrameExecStrategy(skip, skip))
    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    call._torchdynamo_disable_recursive = True  # type: ignore[attr-defined]
    call._torchdynamo_disable_msg = None  # type: ignore[attr-defined]
    call._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    return call


class _Compiler:
    """A compiler's module, or something in one."""

    def __init__(self, path: str) -> None:
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}"
        return _disable if path == "torch._dynamo.disable" else _Compiler(path)

    def __setattr__(self, name: str, value: object) -> None:
        _assigned.append((self._path, name, value))


class _Torch:
    """torch, whose compilers are `_Compiler`."""

    def __getattr__(self, name: str) -> Any:
        return _Compiler(f"torch.{name}") if f"torch.{name}" in _COMPILERS else getattr(_torch, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_torch, name, value)


class _Warnings:
    """warnings, with the filters left to the program."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_warnings, name)

    def filterwarnings(self, *args: object, **kwargs: object) -> None:
        """Nothing. The body wants its message to be seen, which `warn` sees to."""

    def warn(self, message: str, category: type[Warning] = UserWarning) -> None:
        """Show a warning unless the program has decided otherwise. That Python hides import warnings is no decision."""
        first = next((entry for entry in _warnings.filters if _concerns(entry, category)), None)
        if first is None or tuple(first) != ("ignore", None, ImportWarning, None, 0):
            _warnings.warn(message, category, stacklevel=3)
            return
        with _warnings.catch_warnings():
            _warnings.simplefilter("default", category)
            _warnings.warn(message, category, stacklevel=3)


def _concerns(entry: Iterable[Any], category: type[Warning]) -> bool:
    _, message, wanted, module, line = entry
    return message is None and module is None and not line and issubclass(category, wanted)


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """__import__ for the body, and for the functions that it calls."""
    if level == 0 and name == "warnings" and not fromlist:
        return _Warnings()
    if level == 0 and name.startswith(_COMPILERS):
        _imported.append(name)
        return _Compiler(name) if fromlist else _Torch()
    module = _builtins.__import__(name, globals, locals, fromlist, level)
    return _Torch() if module is _torch and not fromlist else module


# --- when it has run ---


def _assign(module: ModuleType, *, values: list[tuple[str, str, object]]) -> None:
    for path, name, value in values:
        owner = module
        for part in filter(None, path.split(".")):
            owner = getattr(owner, part)
        setattr(owner, name, value)


def _assign_when_imported() -> None:
    by_module: dict[str, list[tuple[str, str, object]]] = {}
    for path, name, value in _assigned:
        # The body of a release that is not lazy imports nothing: it reaches into modules right below a compiler.
        below = ".".join(path.split(".")[:3])
        module = max((each for each in _imported if f"{path}.".startswith(f"{each}.")), key=len, default=below)
        by_module.setdefault(module, []).append((path[len(module) + 1 :], name, value))
    for module, values in by_module.items():
        assign = _functools.partial(_assign, values=values)
        _when_imported(module, assign, again=assign)


def _know_functions(trace_rules: ModuleType) -> None:
    """Dynamo knows torch's functions by identity, from a table that it keeps: the replaced ones are to be in it. Those
    that are the NPU's now have the rules of the NPU's names; two rules for one function are an error."""
    for rules in trace_rules.torch_name_rule_map:
        for name in [each for each in rules if each.startswith("torch.cuda.")]:
            if str(getattr(_reached(name), "__module__", "")).startswith("torch_npu."):
                del rules[name]
    trace_rules.clear_lru_cache()


def _reached(path: str) -> object:
    reached: object = _torch
    for part in path.split(".")[1:]:
        reached = getattr(reached, part, None)
    return reached


def _replace_has_triton() -> None:
    """Everywhere in torch, not in four modules only: who imported the function before has the old one."""
    has_triton = _torch.utils._triton.has_triton
    for name, module in list(_sys.modules.items()):
        if name.startswith("torch.") and callable(getattr(module, "__dict__", {}).get("has_triton")):
            module.has_triton = has_triton  # type: ignore[attr-defined]


_wheel: Any = _this.__spec__.loader_state
# The body reads a file that lies beside it.
_this.__file__ = _wheel.get_filename(_this.__name__)
_redirects.run(_patching.body_of(_wheel, _this), globals(), _import, functions=True)
globals().update(torch=_torch, warnings=_warnings)
_assign_when_imported()
_when_imported("torch._dynamo.trace_rules", _know_functions)
_replace_has_triton()
