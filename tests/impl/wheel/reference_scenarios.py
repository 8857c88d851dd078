"""Lazy references: what import statements of a body get, what loads, what takes the reference's place."""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import pickle
import sys
from typing import Any

from core_support import modules
from torch_npu_lazy.profiles import LATER
from torch_npu_lazy.wheel.redirects import execute, run
from torch_npu_lazy.wheel.references import LazyReference, lazily

HEAVY = """
class Thing:
    def __init__(self, size=3): self.size = size
def double(x): return 2 * x
"""


def _body(text: str, answers: dict[str, Any], **others: str) -> dict[str, Any]:
    modules(heavy__inner=HEAVY, **others)
    namespace: dict[str, Any] = {"__name__": "light"}
    execute(compile(text, "light.py", "exec"), namespace, answers)
    return namespace


def _loaded() -> bool:
    return "heavy.inner" in sys.modules


def what_is_referred_to_loads_when_it_is_called() -> None:
    space = _body(
        "from heavy.inner import Thing, double\ndef f(x): return isinstance(x, Thing)\n", {"heavy.inner": LATER}
    )
    assert not space["f"](object())
    assert not issubclass(int, space["Thing"])
    assert not _loaded()
    assert space["double"](4) == 8
    assert _loaded()
    assert space["double"] is sys.modules["heavy.inner"].double
    assert space["f"](sys.modules["heavy.inner"].Thing())


def the_real_thing_takes_its_place_whoever_imports_it() -> None:
    space = _body("from heavy.inner import Thing as Renamed\n", {"heavy.inner": LATER})
    kept = space["Renamed"]
    inner = importlib.import_module("heavy.inner")
    assert space["Renamed"] is inner.Thing
    assert isinstance(inner.Thing(), kept)
    assert kept(5).size == 5


def what_is_loaded_already_is_no_reference() -> None:
    modules(heavy__inner=HEAVY)
    inner = importlib.import_module("heavy.inner")
    space: dict[str, Any] = {"__name__": "light"}
    execute(compile("from heavy.inner import Thing\n", "light.py", "exec"), space, {"heavy.inner": LATER})
    assert space["Thing"] is inner.Thing


def assignments_by_the_body_are_done_later() -> None:
    space = _body(
        "from heavy.inner import Thing\nif not hasattr(Thing, 'extra'): Thing.extra = lambda self: self.size\n",
        {"heavy.inner": LATER},
    )
    assert isinstance(space["Thing"], LazyReference)
    assert not _loaded()
    assert importlib.import_module("heavy.inner").Thing(9).extra() == 9


def a_reference_that_was_assigned_is_replaced_too() -> None:
    space = _body(
        "from heavy.inner import Thing\nfrom heavy.more import method\nThing.extra = method\n",
        {"heavy.inner": LATER, "heavy.more": LATER},
        heavy__more="def method(self): return self.size + 1\n",
    )
    assert space["Thing"]().extra.__func__ is space["method"]
    assert "heavy.more" not in sys.modules
    assert space["Thing"]().extra() == 4
    assert vars(space["Thing"])["extra"] is space["method"] is sys.modules["heavy.more"].method


def another_module_can_give_the_names() -> None:
    space = _body("from heavy.old import Thing\n", {"heavy.old": "heavy.inner"}, heavy__old="1 / 0")
    assert space["Thing"] is sys.modules["heavy.inner"].Thing
    space = _body("import heavy.old\n", {"heavy.old": "heavy"})
    assert space["heavy"] is sys.modules["heavy"]
    assert "heavy.old" not in sys.modules


def a_module_can_be_lazy_beside_names_that_are_not() -> None:
    space = _body("from heavy import inner, other\n", {"heavy": ("inner",)}, heavy__other="value = 1\n")
    assert space["other"].value == 1
    assert not _loaded()
    assert space["inner"].double(2) == 4
    assert space["inner"] is sys.modules["heavy.inner"]


def functions_import_as_written() -> None:
    space = _body(
        "from heavy.inner import Thing\ndef f():\n    from heavy.inner import double\n    return double\n",
        {"heavy.inner": LATER},
    )
    assert space["f"]() is sys.modules["heavy.inner"].double


def nothing_stays_whether_or_not_the_body_fails() -> None:
    for text, error in (("", None), ("1 / 0\n", ZeroDivisionError)):
        modules(heavy__inner=HEAVY)
        before, space = set(sys.modules), {"__name__": "light"}
        code = compile(f"from heavy.inner import Thing\ndef f(): import heavy.inner\n{text}", "light.py", "exec")
        try:
            execute(code, space, {"heavy.inner": LATER})
        except ZeroDivisionError:
            assert error is ZeroDivisionError
        else:
            assert error is None
        assert set(sys.modules) == before
        assert space["__builtins__"] is space["f"].__builtins__ is vars(builtins)  # type: ignore[attr-defined]


def functions_can_be_answered_too_while_the_body_runs() -> None:
    asked = []

    def importer(name: str, *rest: Any) -> Any:
        asked.append(name)
        return builtins.__import__(name, *rest)

    text = "import sys\ndef f():\n    import colorsys\n    return len\nf()\n"
    for functions in (False, True):
        asked.clear()
        space: dict[str, Any] = {"__name__": "light"}
        run(compile(text, "light.py", "exec"), space, importer, functions=functions)
        assert asked == (["sys", "colorsys"] if functions else ["sys"])
        assert space["f"]() is len
        assert asked[2:] == []
        assert space["__builtins__"] is vars(builtins)


def what_a_body_defines_is_in_its_namespace() -> None:
    space = _body("x: int = 1\nclass C: y = x\ndef f(): return x, locals() == {}, globals()\n", {})
    assert space["f"]()[:2] == (1, True)
    assert space["f"]()[2] is space
    assert space["C"].y == 1


def a_reference_can_be_a_base_a_method_and_pickled() -> None:
    modules(heavy__inner=HEAVY)

    class Owner:
        method = LazyReference("heavy.inner", "double")

    assert Owner.method._name == "double"
    assert not _loaded()
    again = pickle.loads(pickle.dumps(Owner.method))
    assert not _loaded()
    assert again(1) == 2
    Owner.method = LazyReference("heavy.inner", "Thing")
    assert Owner().method().size.__class__ is Owner

    class Derived(LazyReference("heavy.inner", "Thing")):  # type: ignore[misc]
        pass

    assert Derived.__mro__[1] is sys.modules["heavy.inner"].Thing


def only_a_question_about_the_thing_itself_loads_it() -> None:
    modules(heavy__inner=HEAVY)
    reference = LazyReference("heavy.inner", "Thing")
    assert reference.__name__ == reference.__qualname__ == "Thing"
    assert [name for name in ("__file__", "__path__", "__signature__", "__spec__") if hasattr(reference, name)] == []
    assert not hasattr(LazyReference("heavy.inner", ""), "__wrapped__")
    assert "heavy.inner.Thing" in repr(reference)
    assert not _loaded()
    assert list(inspect.signature(reference).parameters) == ["size"]
    assert _loaded()


def what_inspect_tells_of_it_is_told_of_the_real_thing() -> None:
    modules(heavy__inner=HEAVY)
    for name, parameters in (("Thing", ["size"]), ("double", ["x"])):
        for loaded in (False, True):
            if not loaded:
                sys.modules.pop("heavy.inner", None)

            @functools.wraps(LazyReference("heavy.inner", name))
            def wrapper(*args: Any) -> Any: ...

            real = inspect.unwrap(wrapper)
            assert real is getattr(sys.modules["heavy.inner"], name)
            assert inspect.getsource(wrapper) == inspect.getsource(real)
            assert list(inspect.signature(wrapper).parameters) == parameters


def a_wrong_reference_says_what_is_missing() -> None:
    modules(heavy__inner=HEAVY)
    for reference, kind in (
        (LazyReference("heavy.inner", "nothing"), AttributeError),
        (LazyReference("heavy.gone", "x"), ImportError),
    ):
        try:
            reference()
        except kind as error:
            assert "nothing" in str(error) or "heavy.gone" in str(error)
        else:
            raise AssertionError(f"{reference} was kept")


def names_given_lazily_are_listed_and_kept() -> None:
    modules(heavy__inner=HEAVY)
    space: dict[str, Any] = {"__name__": "light", "own": 1}
    lazily(space, {"double": "heavy.inner:double"})
    lazily(space, {"inner": "heavy.inner", "made": list})
    assert {"double", "inner", "own"} <= set(space["__dir__"]())
    assert not _loaded()
    assert space["__getattr__"]("double")(2) == 4
    assert space["double"] is sys.modules["heavy.inner"].double
    assert space["__getattr__"]("inner") is sys.modules["heavy.inner"]
    assert space["__getattr__"]("made") is space["made"] == []
    try:
        space["__getattr__"]("nothing")
    except AttributeError as error:
        assert "light" in str(error)
        assert "nothing" in str(error)
    else:
        raise AssertionError("a wrong name was given")
