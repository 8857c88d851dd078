"""Whether a patch is in place, told by what it patches: a flag of the patching module is not shared by a reload or a
second copy of it, and a mark on the function is hidden by the next patch."""

from __future__ import annotations

from functools import _lru_cache_wrapper, partial
from types import CellType, CodeType, FunctionType, MethodType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_FOLLOWED = (FunctionType, MethodType, partial, _lru_cache_wrapper)


def has_layer(function: Any, patch: Any) -> bool:
    """Whether `function` is what `patch` puts in place, or wraps it, at any depth.

    patch: the function that makes or applies the patch, whose inner functions are the layers, or the layer itself. It
    is known by file, line and name. Others' layers may lie above and below; one above is seen through `__wrapped__`,
    partials, closures and the globals that it names.
    """
    wanted = {_place(code) for code in _inner(_code(patch))}
    for layer in _layers(function):
        if _place(layer.__code__) in wanted:
            return True
        for name in layer.__code__.co_names:
            named = layer.__globals__.get(name)
            if isinstance(named, FunctionType) and _place(named.__code__) in wanted:
                return True
    return False


def wrap(owner: Any, name: str, patch: Any) -> None:
    """Put what `patch` makes of `owner`'s attribute in its place, unless it is there. Raises AttributeError."""
    found = getattr(owner, name)
    if not has_layer(found, patch):
        setattr(owner, name, patch(found))


def _layers(function: Any) -> Iterator[FunctionType]:
    seen: set[int] = set()
    todo = [function]
    while todo:
        layer = todo.pop()
        if isinstance(layer, (staticmethod, classmethod)):
            layer = layer.__func__
        if id(layer) in seen or not isinstance(layer, _FOLLOWED):
            continue
        seen.add(id(layer))
        if isinstance(layer, partial):
            todo.append(layer.func)
        elif isinstance(layer, MethodType):
            todo.append(layer.__func__)
        else:
            todo.append(getattr(layer, "__wrapped__", None))
            if isinstance(layer, FunctionType):
                yield layer
                todo.extend(_content(cell) for cell in layer.__closure__ or ())


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _code(patch: Any) -> CodeType:
    while hasattr(patch, "__wrapped__"):
        patch = patch.__wrapped__
    return patch.__code__


def _inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _inner(constant)


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name
