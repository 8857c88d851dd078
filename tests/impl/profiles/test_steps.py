"""What a profile says is to be done: found by name when its time has come, and safe to be done twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from torch_npu_lazy.profiles.steps import Call, Replace, find, perform


class Tool:
    def work(self) -> str:
        return "torch's"


@pytest.fixture
def home() -> Iterator[ModuleType]:
    """A module with a class to patch, and two patches: one that wraps, one that keeps the original beside it."""
    module = ModuleType("steps_home")

    class Patched(Tool):
        pass

    def wrap() -> None:
        original = Patched.work

        def wrapped(self: Patched) -> str:
            return f"wrapped {original(self)}"

        wrapped.__module__ = "steps_home"
        Patched.work = wrapped  # type: ignore[method-assign]

    def replacement(self: Tool) -> str:
        return f"more than {self.work_raw()}"  # type: ignore[attr-defined]

    module.Patched, module.wrap, module.replacement = Patched, wrap, replacement  # type: ignore[attr-defined]
    sys.modules["steps_home"] = module
    yield module
    del sys.modules["steps_home"]


def test_a_replacement_done_twice_still_finds_the_original(home: ModuleType) -> None:
    replace = Replace("steps_home:Patched.work", by="steps_home:replacement", original="work_raw")
    replace()
    replace()
    assert home.Patched().work() == "more than torch's"


def test_a_call_with_a_mark_wraps_once(home: ModuleType) -> None:
    call = Call("steps_home:wrap", unless="steps_home:Patched.work")
    call()
    call()
    assert home.Patched().work() == "wrapped torch's"


def test_a_call_without_a_mark_is_done_each_time(home: ModuleType) -> None:
    call = Call("steps_home:wrap")
    call()
    call()
    assert home.Patched().work() == "wrapped wrapped torch's"


def test_a_step_does_its_actions_in_order_and_again_after_a_failure(home: ModuleType) -> None:
    done: list[str] = []

    def second() -> None:
        done.append("second")
        if len(done) == 2:
            raise OSError("once")

    home.first, home.second = lambda: done.append("first"), second  # type: ignore[attr-defined]
    step = Call("steps_home:first"), Call("steps_home:second")
    with pytest.raises(OSError, match="once"):
        perform(step)
    perform(step)
    assert done == ["first", "second", "first", "second"]


def test_what_a_name_stands_for_is_looked_up_each_time(home: ModuleType) -> None:
    assert find("steps_home:Patched.work") is home.Patched.work
    with pytest.raises(AttributeError):
        find("steps_home:Patched.nonesuch")
    with pytest.raises(ModuleNotFoundError):
        find("steps_nowhere:name")
