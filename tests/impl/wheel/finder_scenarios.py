"""The finder of the wheel's part, behind the trigger's: who is asked, in which order, whatever else is in the way."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from typing import Any

from core_support import in_child, modules
from torch_npu_lazy.core import trigger
from torch_npu_lazy.core.trigger import when_imported
from torch_npu_lazy.wheel.finder import finder

FRONT = [trigger.finder, finder]


def _rewrite(spec: Any) -> Any:
    """Another file for the module of a spec."""
    spec.loader = SourceFileLoader(spec.name, spec.origin.replace("m.py", "other.py"))
    return spec


def _rewritten() -> None:
    modules(m="value = 'file'\n", other="value = 'rewritten'\n")
    finder.rewrites["m"] = _rewrite


class _InFront:
    """Knows one name, as the path does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        del target
        return sys.meta_path[-1].find_spec(name, path) if name == self.name else None


def it_is_seated_behind_the_triggers_finder_once() -> None:
    finder.seat()
    path = list(sys.meta_path)
    assert path[:2] == FRONT
    finder.seat()
    trigger.finder.seat()
    assert sys.meta_path == path


def both_overtake_a_finder_in_front_together() -> None:
    _rewritten()
    finder.seat()
    sys.meta_path.insert(0, _InFront("m"))  # type: ignore[arg-type]
    trigger.finder.seat()
    finder.seat()
    assert sys.meta_path[:2] == FRONT
    assert importlib.import_module("m").value == "rewritten"


def a_rewritten_module_is_watched_like_any_other() -> None:
    for when in ("before", "after"):
        sys.modules.pop("m", None)
        calls: list[str] = []
        _rewritten()
        if when == "before":
            when_imported("m", lambda module, calls=calls: calls.append(module.value))
        finder.seat()
        if when == "after":
            when_imported("m", lambda module, calls=calls: calls.append(module.value))
        module = importlib.import_module("m")
        assert calls == ["rewritten"]
        assert type(module.__loader__) is SourceFileLoader
        assert importlib.reload(module).value == "rewritten"


def an_addition_is_found_where_nobody_knows_the_name_and_can_be_watched() -> None:
    root = modules(other="value = 'added'\n")
    calls: list[str] = []
    finder.additions["m"] = lambda name: importlib.util.spec_from_file_location(name, root / "other.py")  # type: ignore[assignment,return-value]
    finder.seat()
    when_imported("m", lambda module: calls.append(module.value))
    assert importlib.import_module("m").value == "added"
    assert calls == ["added"]


def who_looks_the_name_up_itself_gets_the_plain_answer() -> None:
    _rewritten()
    finder.seat()
    asked: list[Any] = []

    class Recursive:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            del path, target
            if name == "m" and not asked:
                asked.append(None)
                asked.append(importlib.util.find_spec("m"))
            return None

    sys.meta_path.insert(2, Recursive())  # type: ignore[arg-type]
    assert importlib.import_module("m").value == "rewritten"
    assert asked[1].origin.endswith("m.py")


def a_lookup_that_a_fork_cuts_off_is_forgotten_in_the_child() -> None:
    _rewritten()
    finder.seat()
    when_imported("m", lambda _: None)  # so that forks are seen to
    for each in (trigger.finder, finder):
        each._asking.update({(0, "m")})

    def child() -> None:
        assert not trigger.finder._asking
        assert not finder._asking
        assert importlib.import_module("m").value == "rewritten"

    in_child(child)
