"""What the body of transfer_to_npu meets in place of the compiler and of the program's warning filters.

The body imports modules of Dynamo and Inductor only to replace names in them, and replaces them at once. Here its
import statements are answered, and what it assigns is written down; `transfer_to_npu.py` does it when those modules
are imported.
"""

from __future__ import annotations

import builtins as _builtins
import functools as _functools
import warnings as _warnings

import torch as _torch
from torch._C._dynamo import eval_frame as _eval_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_COMPILERS = ("torch._dynamo", "torch._inductor")
_promised: list[str] = []
"""The modules that the body has imported, as far as it knows."""

_assigned: list[tuple[str, str, object]] = []
"""What it has assigned: path of the owner, name, value."""


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


class _Later:
    """A compiler's module, or something in one."""

    def __init__(self, path: str) -> None:
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}"
        return _disable if path == "torch._dynamo.disable" else _Later(path)

    def __setattr__(self, name: str, value: object) -> None:
        _assigned.append((self._path, name, value))


class _Torch:
    """torch, whose compilers are `_Later`."""

    def __getattr__(self, name: str) -> Any:
        return _Later(f"torch.{name}") if f"torch.{name}" in _COMPILERS else getattr(_torch, name)

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


_stand_in = _Torch()


def _import(
    name: str,
    globals: dict[str, Any] | None = None,
    locals: dict[str, Any] | None = None,
    fromlist: tuple[str, ...] | None = (),
    level: int = 0,
) -> Any:
    """__import__ for the body, and for the functions that it calls."""
    if level == 0 and name == "warnings" and not fromlist:
        return _Warnings()
    if level == 0 and name.startswith(_COMPILERS):
        _promised.append(name)
        return _Later(name) if fromlist else _stand_in
    module = _builtins.__import__(name, globals, locals, fromlist or (), level)
    return _stand_in if module is _torch and not fromlist else module


def _end() -> None:
    """The body has run. Its functions keep this dictionary, and import as anybody does from now on."""
    _answering["__import__"] = _builtins.__import__
    globals().update(torch=_torch, warnings=_warnings, __builtins__=vars(_builtins))


_answering = {**vars(_builtins), "__import__": _import}
__builtins__ = _answering
