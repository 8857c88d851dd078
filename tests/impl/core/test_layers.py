"""A patch is found on what it patches, whoever has patched above and below, and by whichever copy of its module."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from torch_npu_lazy.core.layers import has_layer, wrap

SOURCE = """
def patch(original):
    def layer(*args):
        return original(*args)
    return layer

def replacement(*args):
    pass
"""


def _copy() -> SimpleNamespace:
    namespace: dict[str, Any] = {"__name__": "patches"}
    exec(compile(SOURCE, "patches.py", "exec"), namespace)
    return SimpleNamespace(**namespace)


def _original(*args: object) -> object:
    return args


def _by_wraps(function: Any) -> Any:
    @functools.wraps(function)
    def above(*args: object) -> object:
        return function(*args)

    return above


def _by_closure(function: Any) -> Any:
    def above(*args: object) -> object:
        return function(*args)

    return above


def _by_global(function: Any) -> Any:
    namespace = {"kept": function}
    exec("def above(*args): return kept(*args)", namespace)
    return namespace["above"]


class _Owner:
    def method(self) -> None: ...


ABOVE: list[Callable[[Any], Any]] = [
    lambda function: function,
    _by_wraps,
    _by_closure,
    _by_global,
    functools.partial,
    functools.lru_cache,
    staticmethod,
    lambda function: _by_wraps(_by_closure(functools.partial(function))),
    lambda function: function.__get__(_Owner()),
]


@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("below", [_original, _by_wraps(_original), _by_global(_original), len])
def test_a_layer_is_found_by_another_copy(above: Callable[[Any], Any], below: Any) -> None:
    first, second = _copy(), _copy()
    assert has_layer(above(first.patch(below)), second.patch)
    assert has_layer(above(first.replacement), second.replacement)


@pytest.mark.parametrize("above", ABOVE)
def test_a_place_is_wrapped_once_by_all_copies(above: Callable[[Any], Any]) -> None:
    owner = SimpleNamespace(place=_original)
    wrap(owner, "place", _copy().patch)
    assert owner.place is not _original
    assert owner.place(1, 2) == (1, 2)
    owner.place = wrapped = above(owner.place)
    wrap(owner, "place", _copy().patch)
    assert owner.place is wrapped


def test_a_place_that_is_not_there_is_said() -> None:
    with pytest.raises(AttributeError, match="place"):
        wrap(SimpleNamespace(), "place", _copy().patch)


@pytest.mark.parametrize("above", ABOVE)
def test_nothing_is_found_where_nothing_is(above: Callable[[Any], Any]) -> None:
    patches = _copy()
    assert not has_layer(above(_original), patches.patch)
    assert not has_layer(above(patches.replacement), patches.patch)


def test_what_is_no_function_is_no_layer_and_is_not_asked() -> None:
    class Loud:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

        def __call__(self) -> None: ...

    assert not has_layer(Loud(), _copy().patch)
    assert not has_layer(None, _copy().patch)


def test_a_function_that_contains_itself_ends() -> None:
    def around() -> object:
        return around

    assert not has_layer(around, _copy().patch)
