"""Placeholders: what loads them and what does not, what they become."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core_support import Gate, Runner, kinds, modules, until
from torch_npu_lazy.core import events, locks
from torch_npu_lazy.core.trigger import when_imported
from torch_npu_lazy.wheel.placeholders import LazyGroup

PKG = """
import sys
sys.log.append("body pkg")
def setup(*args, **kwargs):
    "Sets up."
    sys.log.append(("setup", args, kwargs))
    return 7
class Thing:
    value = 5
"""
OTHER = """
import sys
sys.log.append("body other")
def patch(): sys.log.append("patch")
def fragile():
    if sys.fails: raise sys.fails.pop()
    sys.log.append("fragile")
"""


class _Finder:
    """What an overlay's own finder does: answers for named modules with specs of placeholders."""

    def __init__(self, group: LazyGroup, names: dict[str, dict[str, Any]]) -> None:
        self.group, self.names, self.busy = group, names, False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        del path, target
        if self.busy or name not in self.names:
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        assert spec is not None
        return self.group.add(spec, **self.names[name])


def _make_lazy(**names: dict[str, Any]) -> LazyGroup:
    sys.log, sys.fails = [], []  # type: ignore[attr-defined]
    modules(pkg=PKG, pkg__sub="import sys\nfrom . import Thing\n", other=OTHER)
    group = LazyGroup("the compiler")
    names = names or {
        "pkg": {"idle": ["setup"], "public": ["Thing"]},
        "other": {"idle": ["patch", "fragile"]},
    }
    sys.meta_path.insert(0, _Finder(group, names))  # type: ignore[arg-type]
    return group


def _log() -> list[Any]:
    return sys.log  # type: ignore[attr-defined]


def an_idle_function_does_nothing_until_the_module_is_loaded() -> None:
    """Whoever has bound it calls the real one then."""
    group = _make_lazy()
    import pkg  # type: ignore[import-not-found]
    from pkg import setup  # type: ignore[import-not-found]

    assert pkg.setup(1, a=2) is None
    assert setup(3) is None
    assert _log() == []
    assert (setup.__name__, setup.__module__) == ("setup", "pkg")
    group.load()
    assert _log() == ["body pkg"]
    assert setup(4) == pkg.setup(5) == 7
    assert pkg.setup is not setup
    assert _log()[-2:] == [("setup", (4,), {}), ("setup", (5,), {})]


def a_body_that_fails_leaves_the_other_bodies_done() -> None:
    group = _make_lazy(pkg={}, other={})
    modules(other="import sys\nsys.log.append('body other')\nif sys.fails: raise sys.fails.pop()\n")
    import other  # type: ignore[import-not-found]
    import pkg  # type: ignore[import-not-found]

    assert pkg is not other
    sys.fails.append(ValueError("once"))  # type: ignore[attr-defined]
    for _ in range(2):
        try:
            group.load()
        except ValueError:
            assert not group.loaded
    assert group.loaded
    assert sorted(_log()) == ["body other", "body other", "body pkg"]


def the_placeholder_becomes_the_module() -> None:
    group = _make_lazy()
    pkg: Any = importlib.import_module("pkg")
    spec = pkg.__spec__
    group.load()
    assert sys.modules["pkg"] is pkg
    assert type(pkg).__name__ == "module"
    assert pkg.setup.__globals__ is vars(pkg)
    assert type(pkg.__loader__).__name__ == "SourceFileLoader"
    assert pkg.__spec__.loader is pkg.__loader__
    assert pkg.__spec__ is not spec
    assert inspect.getsource(pkg) == PKG
    assert not [name for name in vars(pkg) if "lazy" in name]


def no_scan_loads_it_or_fails_otherwise() -> None:
    group = _make_lazy()
    pkg: Any = importlib.import_module("pkg")
    from pkg import setup  # type: ignore[import-not-found]

    names = ["__spec__", "__path__", "__file__", "__name__", "__wrapped__", "__all__", "__getattr__", "__class__", "x"]
    for module in list(sys.modules.values()):
        for name in names:
            getattr(module, name, None)
            hasattr(setup, name)
    assert pkg.__file__.endswith("pkg/__init__.py")
    assert pkg.__path__ == [pkg.__file__.removesuffix("/__init__.py")]
    assert pkg.__spec__.origin == pkg.__file__
    assert pkg.__package__ == "pkg"
    assert {"setup", "Thing", "__name__"} <= set(dir(pkg))
    inspect.getmodule(inspect.currentframe())
    inspect.stack()
    inspect.ismodule(pkg)
    inspect.getfile(pkg)
    inspect.getsource(pkg)
    inspect.getdoc(pkg)
    inspect.signature(setup)
    assert all((repr(pkg), str(setup), hash(pkg), bool(pkg)))
    assert importlib.util.find_spec("pkg") is pkg.__spec__
    assert importlib.util.find_spec("pkg.sub") is not None
    assert copy.copy(pkg) is pkg
    assert copy.deepcopy(pkg) is pkg
    assert pickle.loads(pickle.dumps(pkg)) is pkg
    assert pickle.loads(pickle.dumps(setup)) is setup
    assert copy.copy(setup) is setup
    assert importlib.reload(pkg) is pkg
    assert pkg.__spec__.loader.is_package("pkg")
    try:
        pkg.nonsense  # noqa: B018
    except AttributeError as error:
        assert (
            str(error) == "module 'pkg' has no attribute 'nonsense'; it is not loaded yet, and comes with the compiler"
        )
        assert (error.name, error.obj) == ("nonsense", pkg)
    else:
        raise AssertionError("found")
    assert _log() == []
    assert not group.loaded


def a_public_name_loads_it() -> None:
    _make_lazy()
    from pkg import Thing  # type: ignore[import-not-found]

    assert Thing.value == 5
    assert sys.modules["pkg"].Thing is Thing
    assert "body pkg" in _log()


def a_submodule_loads_it() -> None:
    for route in ("import pkg.sub", "from pkg import sub", "import importlib; importlib.import_module('pkg.sub')"):
        for name in ("pkg", "pkg.sub"):
            sys.modules.pop(name, None)
        group = _make_lazy()
        exec(route)
        assert group.loaded
        assert sys.modules["pkg.sub"].Thing is sys.modules["pkg"].Thing
        assert sys.modules["pkg"].sub is sys.modules["pkg.sub"]
        sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _Finder)]


def a_child_that_its_parent_imports_is_made_once() -> None:
    """Whichever is asked for first; two copies would not know each other's classes."""
    for first in ("pkg", "pkg.sub"):
        for name in ("pkg", "pkg.sub"):
            sys.modules.pop(name, None)
        _make_lazy(pkg={"public": ["Thing"]})
        modules(
            pkg="import pkg.sub\nThing = pkg.sub.Thing\n",
            pkg__sub="import sys\nclass Thing: pass\nsys.log.append('sub')\n",
        )
        importlib.import_module(first)
        import pkg.sub  # type: ignore[import-not-found]

        assert pkg.Thing is pkg.sub.Thing
        assert pkg.sub is sys.modules["pkg.sub"]
        assert _log().count("sub") == 1
        assert importlib.util.find_spec("pkg.sub").loader is pkg.sub.__loader__  # type: ignore[union-attr]
        importlib.reload(pkg.sub)
        assert _log().count("sub") == 2
        sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _Finder)]


def a_body_that_fails_leaves_a_placeholder() -> None:
    group = _make_lazy(pkg={"idle": ["setup"], "public": ["Thing"]})
    modules(pkg=PKG + "if sys.fails: raise sys.fails.pop()\n")
    import pkg  # type: ignore[import-not-found]

    pkg.setup(1)
    sys.fails.append(OSError("no disk"))  # type: ignore[attr-defined]
    try:
        pkg.Thing  # noqa: B018
    except AttributeError as error:
        assert isinstance(error.__cause__, OSError)
        assert "OSError: no disk" in str(error)
    else:
        raise AssertionError("found")
    sys.fails.append(ImportError("none"))  # type: ignore[attr-defined]
    assert getattr(pkg, "Thing", None) is None
    assert pkg.setup(2) is None
    sys.fails.append(ImportError("direct"))  # type: ignore[attr-defined]
    try:
        group.load()
    except ImportError as error:
        assert error.args == ("direct",)
    else:
        raise AssertionError("swallowed")
    assert pkg.Thing.value == 5
    assert _log().count("body pkg") == 4
    assert pkg.setup(3) == 7


def a_trigger_loads_it_before_the_import_returns() -> None:
    group = _make_lazy()
    modules(compiler="value = 1\n")
    trigger = when_imported("compiler", lambda _: group.load())
    import pkg  # type: ignore[import-not-found]

    pkg.setup()
    __import__("compiler")
    assert group.loaded
    assert trigger.settled
    assert pkg.Thing.value == 5


def two_threads_load_it_once() -> None:
    gate, runner = Gate(), Runner()
    group = _make_lazy(pkg={"idle": ["setup"], "public": ["Thing"]})
    sys.gate = gate  # type: ignore[attr-defined]
    modules(pkg="import sys\nsys.gate.stop_here()\n" + PKG)
    import pkg  # type: ignore[import-not-found]

    pkg.setup()
    runner.start(group.load)
    gate.reached()
    values: list[int] = []
    second = runner.start(lambda: (group.load(), values.append(pkg.Thing.value)))
    gate.open()
    runner.join()
    assert second.ident
    assert values == [5]
    assert _log() == ["body pkg"]


def no_thread_sees_it_half_loaded() -> None:
    """By attribute, by import of a name, of a submodule, by assignment: each waits for the body to end."""
    uses: list[Callable[[Any], object]] = [
        lambda pkg: pkg.Thing.value,
        lambda _: __import__("pkg", fromlist=["Thing"]).Thing.value,
        lambda _: __import__("pkg.sub").sub.Thing.value,
        lambda pkg: setattr(pkg, "Thing", None) or 5,
    ]
    for use in uses:
        for name in ("pkg", "pkg.sub"):
            sys.modules.pop(name, None)
        gate, runner = Gate(), Runner()
        group = _make_lazy(pkg={"public": ["Thing"]})
        sys.gate = gate  # type: ignore[attr-defined]
        modules(pkg="import sys\nsys.gate.stop_here()\n" + PKG, pkg__sub="from . import Thing\n")
        pkg: Any = importlib.import_module("pkg")
        runner.start(group.load)
        gate.reached()
        values: list[object] = []
        second = runner.start(lambda use=use, pkg=pkg, values=values: values.append(use(pkg)))
        until(lambda second=second: not second.is_alive() or second.ident in locks._waiting)
        gate.open()
        runner.join()
        assert values == [5]
        assert type(pkg).__name__ == "module"
        assert (pkg.Thing is None) is (use is uses[-1])
        sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _Finder)]


def what_is_set_or_deleted_stays_so() -> None:
    """As it would if the module had been loaded from the start."""
    _make_lazy(pkg={"open": True}, other={"public": ["patch"]})
    pkg, other = importlib.import_module("pkg"), importlib.import_module("other")
    pkg.Thing = "mine"  # type: ignore[attr-defined]
    assert _log() == ["body pkg", "body other"]
    del pkg.setup  # type: ignore[attr-defined]
    assert pkg.Thing == "mine"
    assert not hasattr(pkg, "setup")
    other.patch = "mine"  # type: ignore[attr-defined]
    assert other.patch == "mine"
    assert len(_log()) == 2


def what_says_nothing_of_the_body_is_set_without_it() -> None:
    _make_lazy(pkg={"open": True, "apart": ["sub"]}, other={"public": ["patch"]})
    modules(pkg="import sys\nsys.log.append('body pkg')\nkept = 'body'\n", pkg__sub="value = 1\n")
    pkg, other = importlib.import_module("pkg"), importlib.import_module("other")
    pkg.__dict__["__note__"] = pkg.__note__ = 1  # type: ignore[attr-defined]
    importlib.import_module("pkg.sub")
    other.unlisted = 2  # type: ignore[attr-defined]
    assert _log() == []
    assert (pkg.sub.value, pkg.__note__, other.unlisted) == (1, 1, 2)
    assert pkg.kept == "body"
    assert pkg.sub.value == 1


def a_class_that_the_body_gives_its_module_stays() -> None:
    group = _make_lazy(pkg={"public": ["Thing"]})
    modules(pkg=PKG + "class Own(type(sys)):\n    doubled = property(lambda self: 2 * self.Thing.value)\n")
    with Path(str(importlib.import_module("pkg").__file__)).open("a") as body:
        body.write("sys.modules[__name__].__class__ = Own\n")
    group.load()
    assert sys.modules["pkg"].doubled == 10
    assert type(sys.modules["pkg"]).__name__ == "Own"


def the_record_tells_who_caused_what() -> None:
    group = _make_lazy()
    import pkg  # type: ignore[import-not-found]

    pkg.setup()
    program: Callable[..., Any] = compile("\n\nload()\n", "user.py", "exec")  # type: ignore[assignment]
    exec(program, {"load": group.load, "__name__": "user"})  # type: ignore[arg-type]
    by_kind = {event.kind: event for event in events.so_far() if "load the compiler" in event.subject}
    assert by_kind["run"].cause == "user:3"
    assert by_kind["done"].seconds is not None
    assert "defer" in kinds("body of pkg")
    assert any("load the compiler" in line and "(by user:3)" in line for line in events.explain())
