"""Post-import triggers: every route, hostile finders, failures, reloads, half-done imports."""

from __future__ import annotations

import copy
import importlib
import importlib.machinery
import importlib.resources
import importlib.util
import inspect
import pickle
import pkgutil
import subprocess
import sys
import types
from collections.abc import Sequence
from typing import Any

from core_support import DEADLINE, Gate, Runner, blocked_on_import, kinds, modules, until
from torch_npu_lazy.core import locks
from torch_npu_lazy.core.once import Steps, run_once
from torch_npu_lazy.core.trigger import Trigger, finder, when_imported

BODY = "value = 1\n"


def _watch(name: str, **bodies: str) -> tuple[list[types.ModuleType], Trigger]:
    modules(**(bodies or {name: BODY}))
    calls: list[types.ModuleType] = []
    return calls, when_imported(name, calls.append)


def _loader(module: types.ModuleType) -> Any:
    return module.__spec__ and module.__spec__.loader


def it_fires_once_before_the_import_returns_by_any_route() -> None:
    routes = {
        "a": "import a",
        "b": "from b import value",
        "c": "import importlib; importlib.import_module('c')",
        "d": "import d.sub",
        "e": "from e import sub",
        "f": "from f.sub import value",
        "g": "__import__('g')",
    }
    for name, route in routes.items():
        calls, trigger = _watch(name, **{name: BODY, f"{name}__sub": BODY})
        assert not trigger.fired
        exec(f"{route}\nassert calls == [sys.modules[{name!r}]]", {"calls": calls, "sys": sys})
        exec(route)
        assert len(calls) == 1
        assert trigger.fired
        assert trigger.settled


def it_fires_at_once_if_the_module_is_there() -> None:
    modules(m=BODY)
    import m  # type: ignore[import-not-found]

    calls: list[object] = []
    assert when_imported("m", calls.append).settled
    assert calls == [m]


def a_failure_at_once_is_kept_too() -> None:
    fails = [OSError("no")]
    trigger = when_imported("sys", lambda _: fails and _raise(fails.pop()))
    assert isinstance(trigger.error, OSError)
    trigger.ensure()
    assert trigger.settled


def a_probe_has_no_effect() -> None:
    modules(m=BODY)
    calls: list[types.ModuleType] = []
    trigger = when_imported("m", calls.append)
    path, loaded = list(sys.meta_path), set(sys.modules)
    spec = importlib.util.find_spec("m")
    assert spec is not None
    assert (list(map(id, sys.meta_path)), set(sys.modules)) == (list(map(id, path)), loaded)
    assert not trigger.fired
    assert spec.loader is not None
    beside = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(beside)
    assert beside.value == 1
    assert type(beside.__loader__) is importlib.machinery.SourceFileLoader
    assert not calls, "a copy beside the import is not the module"
    spec = importlib.util.find_spec("m")
    assert spec is not None
    assert spec.loader is not None
    sys.modules["m"] = real = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real)
    assert calls == [real]


def the_loader_is_transparent_before_and_after() -> None:
    modules(pkg="'''Doc.'''\nvalue = 1\n", pkg__sub=BODY)
    plain = importlib.util.find_spec("pkg")
    when_imported("pkg", lambda _: None)
    watched = importlib.util.find_spec("pkg")
    assert plain is not None
    assert watched is not None
    loader: Any = watched.loader
    real: Any = plain.loader
    assert loader == real
    assert hash(loader) == hash(real)
    assert isinstance(loader, importlib.machinery.SourceFileLoader)
    for name in ("name", "path"):
        assert getattr(loader, name) == getattr(real, name)
    assert loader.get_source("pkg") == real.get_source("pkg")
    assert loader.get_code("pkg") == real.get_code("pkg")
    assert loader.is_package("pkg") is True
    assert loader.get_filename("pkg") == real.get_filename("pkg")
    assert copy.copy(loader) == real
    assert not hasattr(loader, "nonsense")
    assert pickle.loads(pickle.dumps(loader)) == real
    assert watched.origin == plain.origin
    import pkg  # type: ignore[import-not-found]

    assert type(pkg.__loader__) is importlib.machinery.SourceFileLoader
    assert _loader(pkg) is pkg.__loader__
    assert type(pkg.__spec__) is importlib.machinery.ModuleSpec
    assert importlib.resources.files("pkg").joinpath("__init__.py").is_file()
    assert pkgutil.get_data("pkg", "__init__.py") == b"'''Doc.'''\nvalue = 1\n"
    assert inspect.getsource(pkg) == "'''Doc.'''\nvalue = 1\n"


def the_body_sees_its_real_loader() -> None:
    _watch(
        "m", m="import importlib.machinery as i\nassert type(__loader__) is type(__spec__.loader) is i.SourceFileLoader"
    )
    __import__("m")


def python_minus_m_works_on_a_watched_module() -> None:
    root = modules(m="print('ran as', __name__)\n")
    program = (
        "import sys, runpy\n"
        "from torch_npu_lazy.core.trigger import when_imported\n"
        "when_imported('m', lambda _: print('fired'))\n"
        "runpy.run_module('m', run_name='__main__')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-S", "-s", "-c", f"import sys\nsys.path[:0] = {[str(root), *sys.path]!r}\n{program}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert ended.stdout == "ran as __main__\n", ended.stderr


def a_failing_body_is_imported_again() -> None:
    calls, trigger = _watch(
        "m", m="import sys\nif not hasattr(sys, 'again'):\n    sys.again = 1\n    raise LookupError(5)"
    )
    try:
        __import__("m")
    except LookupError as error:
        assert error.args == (5,)
    else:
        raise AssertionError("swallowed")
    assert "m" not in sys.modules
    assert not calls
    __import__("m")
    assert len(calls) == 1
    assert trigger.settled


def _raise(error: BaseException) -> None:
    raise error


def a_failing_callback_leaves_the_module_importable() -> None:
    for error in (ValueError("v"), KeyboardInterrupt(), SystemExit(3)):
        name = f"m{type(error).__name__}"
        modules(**{name: BODY, f"{name}__sub": BODY})
        fails = [error, error]
        trigger = when_imported(name, lambda _, fails=fails: fails and _raise(fails.pop()))
        module = importlib.import_module(f"{name}.sub")
        assert trigger.error is error
        assert importlib.import_module(name).sub is module
        try:
            trigger.ensure()
        except BaseException as raised:
            assert raised is error
            assert raised.__traceback__ is not None
        else:
            raise AssertionError("swallowed")
        assert not trigger.fired
        trigger.ensure()
        assert (trigger.fired, trigger.error, trigger.settled) == (True, None, True)
        assert "kept" in kinds(name)


def a_cold_ensure_tries_once_per_call() -> None:
    modules(m=BODY)
    attempts = []

    def setup(_: types.ModuleType) -> None:
        attempts.append(1)
        if len(attempts) < 3:
            raise ValueError(len(attempts))

    trigger = when_imported("m", setup)
    for expected in (1, 2):
        try:
            trigger.ensure()
        except ValueError as error:
            assert error.args == (expected,)
        else:
            raise AssertionError("swallowed")
    trigger.ensure()
    trigger.ensure()
    assert len(attempts) == 3


def a_cold_setup_tries_once_per_call() -> None:
    modules(m=BODY)
    steps, attempts = Steps("ledger"), []

    def step() -> None:
        attempts.append(1)
        if len(attempts) < 2:
            raise ValueError(len(attempts))

    @run_once(imports=["m"], steps=steps)
    def setup() -> None:
        steps.run("one", step)

    trigger = when_imported("m", lambda _: setup())
    try:
        setup()
    except ValueError as error:
        assert error.args == (1,)
    else:
        raise AssertionError("swallowed")
    setup()
    assert len(attempts) == 2
    trigger.ensure()
    assert trigger.settled
    assert trigger.error is None


def ensure_raises_what_the_import_raises() -> None:
    trigger = when_imported("no_such_module", lambda _: None)
    for _ in range(2):
        try:
            trigger.ensure()
        except ModuleNotFoundError:
            pass
        else:
            raise AssertionError("swallowed")


def a_reload_applies_again() -> None:
    modules(m=BODY)
    first, later = [], []
    when_imported("m", first.append, again=later.append)
    import m  # type: ignore[import-not-found]

    assert importlib.reload(m) is m
    assert (first, later) == ([m], [m])
    assert type(m.__loader__) is type(_loader(m)) is importlib.machinery.SourceFileLoader
    del sys.modules["m"]
    assert importlib.import_module("m") is not m
    assert len(first) == 1
    assert len(later) == 2


def a_failure_after_a_reload_is_kept_and_owed() -> None:
    modules(m=BODY)
    later = []

    def again(module: types.ModuleType) -> None:
        later.append(module)
        if len(later) == 1:
            raise ValueError

    trigger = when_imported("m", lambda _: None, again=again)
    import m  # type: ignore[import-not-found]

    assert trigger.settled
    importlib.reload(m)
    assert isinstance(trigger.error, ValueError)
    trigger.ensure()
    assert len(later) == 2
    assert trigger.settled


def a_blocked_module_is_no_module() -> None:
    modules(m=BODY)
    sys.modules["m"] = None  # type: ignore[assignment]
    calls: list[object] = []
    trigger = when_imported("m", calls.append)
    try:
        __import__("m")
    except ModuleNotFoundError:
        pass
    else:
        raise AssertionError("imported")
    try:
        trigger.ensure()
    except ModuleNotFoundError:
        pass
    else:
        raise AssertionError("ensured")
    del sys.modules["m"]
    __import__("m")
    assert len(calls) == 1


def _half_imported_body(when: str) -> str:
    return f"import sys\n{when}\nvalue = 1\n"


def a_half_imported_module_fires_when_it_is_whole() -> None:
    calls: list[Any] = []
    sys.watch = lambda: when_imported("m", lambda module: calls.append(module.value))  # type: ignore[attr-defined]
    modules(m=_half_imported_body("sys.trigger = sys.watch(); sys.other = sys.watch(); assert not sys.trigger.fired"))
    import m  # type: ignore[import-not-found]

    assert calls == [1, 1]
    assert type(m.__spec__) is importlib.machinery.ModuleSpec
    assert sys.trigger.settled  # type: ignore[attr-defined]
    assert sys.other.settled  # type: ignore[attr-defined]


def a_watched_body_may_watch_itself() -> None:
    calls: list[Any] = []
    sys.watch = lambda: when_imported("m", lambda module: calls.append(module.value))  # type: ignore[attr-defined]
    sys.watch()  # type: ignore[attr-defined]
    modules(m=_half_imported_body("sys.watch()"))
    __import__("m")
    assert calls == [1, 1]


def a_half_imported_module_that_fails_fires_at_the_next_import() -> None:
    calls: list[Any] = []
    sys.watch = lambda: when_imported("m", calls.append)  # type: ignore[attr-defined]
    modules(m=_half_imported_body("if not hasattr(sys, 'again'):\n    sys.again = sys.watch()\n    raise ValueError"))
    try:
        __import__("m")
    except ValueError:
        pass
    else:
        raise AssertionError("swallowed")
    assert not calls
    __import__("m")
    assert len(calls) == 1


def a_module_that_another_thread_is_importing_fires_under_its_lock() -> None:
    sys.gate, hook = Gate(), Gate()  # type: ignore[attr-defined]
    modules(m=_half_imported_body("sys.gate.stop_here()"))
    runner = Runner()
    runner.start(__import__, "m")
    sys.gate.reached()  # type: ignore[attr-defined]
    trigger = when_imported("m", lambda _: hook.stop_here())
    sys.gate.open()  # type: ignore[attr-defined]
    hook.reached()

    def second() -> None:
        __import__("m")
        assert trigger.settled

    late = runner.start(second)
    until(lambda: blocked_on_import(late))
    hook.open()
    runner.join()


class _Behind:
    """Serves one name, and remembers what it was asked."""

    def __init__(self, name: str, root: str) -> None:
        self.name, self.root = name, root
        self.asked: list[tuple[object, object]] = []

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        self.asked.append((path, target))
        return importlib.util.spec_from_file_location(name, f"{self.root}/served.py")


def a_finder_behind_decides_and_is_asked_once() -> None:
    root = modules(pkg__m=BODY, served="served = True\n")
    behind = _Behind("pkg.m", str(root))
    sys.meta_path.insert(0, behind)  # type: ignore[arg-type]
    calls: list[Any] = []
    when_imported("pkg.m", lambda module: calls.append(module.served))
    import pkg.m  # type: ignore[import-not-found]

    assert behind.asked == [(pkg.__path__, None)]
    importlib.reload(pkg.m)
    assert behind.asked[1] == (pkg.__path__, pkg.m)
    assert calls == [True]


def a_finder_in_front_is_noticed() -> None:
    root = modules(m=BODY, served="served = True\n")
    calls: list[Any] = []
    trigger = when_imported("m", lambda module: calls.append(module.served))
    sys.meta_path.insert(0, _Behind("m", str(root)))  # type: ignore[arg-type]
    __import__("m")
    assert not trigger.fired
    trigger.ensure()
    assert calls == [True]
    assert sys.meta_path[0] is finder  # type: ignore[comparison-overlap]


def a_finder_in_front_is_overtaken_by_the_next_trigger() -> None:
    root = modules(m=BODY, served="served = True\n")
    calls: list[Any] = []
    when_imported("m", lambda module: calls.append(module.served))
    sys.meta_path.insert(0, _Behind("m", str(root)))  # type: ignore[arg-type]
    when_imported("unrelated", calls.append)
    __import__("m")
    assert calls == [True]


def a_finder_in_front_does_not_hide_a_body_that_imports() -> None:
    """The body's first import shows what is under way; another thread's import waits for the callback all the same."""
    root = modules(m=BODY, inner=BODY, served="import inner\nserved = True\n")
    gate, calls, runner, seen = Gate(), [], Runner(), []

    def callback(module: types.ModuleType) -> None:
        gate.stop_here()
        calls.append(module.served)

    trigger = when_imported("m", callback)
    sys.meta_path.insert(0, _Behind("m", str(root)))  # type: ignore[arg-type]
    runner.start(__import__, "m")
    gate.reached()

    def other() -> None:
        __import__("m")
        seen.append(list(calls))

    thread = runner.start(other)
    until(lambda: blocked_on_import(thread))
    gate.open()
    runner.join()
    assert seen == [[True]]
    assert trigger.settled
    assert type(sys.modules["m"].__spec__) is importlib.machinery.ModuleSpec
    assert kinds("m").count("overlooked") == 1


def a_hidden_body_that_fails_is_noticed_again() -> None:
    root = modules(m=BODY, inner=BODY, served="import inner, sys\nif sys.fails: raise OSError(sys.fails.pop())\n")
    sys.fails = ["once"]  # type: ignore[attr-defined]
    calls: list[Any] = []
    trigger = when_imported("m", calls.append)
    sys.meta_path.insert(0, _Behind("m", str(root)))  # type: ignore[arg-type]
    try:
        __import__("m")
    except OSError:
        pass
    else:
        raise AssertionError
    assert not calls
    assert trigger.error is None
    del sys.modules["inner"]
    __import__("m")
    assert calls == [sys.modules["m"]]


class _Recursive:
    """Looks the name up again by itself."""

    def __init__(self) -> None:
        self.busy = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        del path, target
        if self.busy or name != "m":
            return None
        self.busy = True
        try:
            return importlib.util.find_spec(name)
        finally:
            self.busy = False


def a_finder_that_looks_up_itself_is_no_circle() -> None:
    for front in (True, False):
        sys.modules.pop("m", None)
        hostile = _Recursive()
        if not front:
            sys.meta_path.insert(0, hostile)  # type: ignore[arg-type]
        calls, _ = _watch("m")
        if front:
            sys.meta_path.insert(0, hostile)  # type: ignore[arg-type]
        __import__("m")
        assert len(calls) == 1


def finders_without_find_spec_and_raising_ones_behave_as_without_us() -> None:
    class Empty:
        pass

    class Raising:
        def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
            if name == "m" and armed:
                raise ZeroDivisionError(name)

    armed = [True]
    sys.meta_path.insert(0, Raising())  # type: ignore[arg-type]
    sys.meta_path.insert(0, Empty())  # type: ignore[arg-type]
    sys.meta_path.append(Empty())  # type: ignore[arg-type]
    calls, trigger = _watch("m")
    try:
        __import__("m")
    except ZeroDivisionError as error:
        assert error.args == ("m",)
    else:
        raise AssertionError("swallowed")
    armed.clear()
    __import__("m")
    assert len(calls) == 1
    assert trigger.settled


def a_finder_that_hands_out_one_spec_again_and_again() -> None:
    root = modules(m=BODY)
    spec = importlib.util.spec_from_file_location("m", root / "m.py")

    class Caching:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            del path, target
            return spec if name == "m" else None

    sys.meta_path.insert(0, Caching())  # type: ignore[arg-type]
    calls: list[object] = []
    when_imported("m", calls.append)
    importlib.util.find_spec("m")
    importlib.util.find_spec("m")
    __import__("m")
    assert len(calls) == 1
    del sys.modules["m"]
    __import__("m")
    assert len(calls) == 1


def a_loader_older_than_exec_module_works() -> None:
    class Old:
        def load_module(self, name: str) -> types.ModuleType:
            module = sys.modules[name] = types.ModuleType(name)
            module.value = 1  # type: ignore[attr-defined]
            return module

    class Serves:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            del path, target
            return importlib.machinery.ModuleSpec(name, old) if name == "m" else None  # type: ignore[arg-type]

    old = Old()
    sys.meta_path.insert(0, Serves())  # type: ignore[arg-type]
    calls: list[object] = []
    when_imported("m", calls.append)
    import m  # type: ignore[import-not-found]

    assert calls == [m]
    assert _loader(m) is old
    assert m.__loader__ is old


def a_module_that_puts_another_in_its_place_counts() -> None:
    calls, _ = _watch("m", m="import sys, types\nsys.modules[__name__] = types.SimpleNamespace(value=1)\n")
    import m  # type: ignore[import-not-found]

    assert calls == [m]


def several_triggers_and_nested_ones_fire_in_order() -> None:
    modules(outer="import inner\n", inner=BODY)
    order: list[str] = []
    for label, name in (("o1", "outer"), ("i", "inner"), ("o2", "outer")):
        when_imported(name, lambda _, label=label: order.append(label))
    __import__("outer")
    assert order == ["i", "o1", "o2"]


def who_imports_meanwhile_waits_for_the_callback() -> None:
    gate, runner = Gate(), Runner()
    modules(m=BODY)
    trigger = when_imported("m", lambda _: gate.stop_here())

    def importer() -> None:
        __import__("m")
        assert trigger.settled

    def ensurer() -> None:
        trigger.ensure()
        assert trigger.fired

    runner.start(importer)
    gate.reached()
    others = [runner.start(importer), runner.start(ensurer)]
    until(lambda: blocked_on_import(others[0]) and others[1].ident in locks._waiting)
    gate.open()
    runner.join()


def who_imports_waits_for_a_setup_that_was_called_directly() -> None:
    gate, runner = Gate(), Runner()
    modules(m=BODY)

    @run_once(imports=["m"])
    def setup() -> None:
        gate.stop_here()

    when_imported("m", lambda _: setup())
    runner.start(setup)
    gate.reached()

    def importer() -> None:
        __import__("m")
        assert setup.has_run

    late = runner.start(importer)
    until(lambda: blocked_on_import(late))
    gate.open()
    runner.join()


def a_direct_call_while_the_importer_is_between_body_and_callback() -> None:
    sys.gate, runner, runs = Gate(), Runner(), []  # type: ignore[attr-defined]
    modules(m=_half_imported_body("sys.gate.stop_here()"))

    @run_once(imports=["m"])
    def setup() -> None:
        import m  # type: ignore[import-not-found]

        runs.append(m.value)

    when_imported("m", lambda _: setup())
    runner.start(__import__, "m")
    sys.gate.reached()  # type: ignore[attr-defined]
    direct = runner.start(setup)
    until(lambda: blocked_on_import(direct))
    sys.gate.open()  # type: ignore[attr-defined]
    runner.join()
    assert runs == [1]


def a_step_that_needs_a_module_whose_body_ensures() -> None:
    """The setup runs in the import of m and imports x; another thread is in x's body, which ensures m."""
    gate, runner = Gate(), Runner()
    sys.gate = Gate()  # type: ignore[attr-defined]
    modules(m=BODY, x="import sys\nsys.gate.stop_here()\nsys.trigger.ensure()\nwhole = True\n")

    def setup(_: types.ModuleType) -> None:
        gate.stop_here()
        assert importlib.import_module("x").whole

    sys.trigger = trigger = when_imported("m", setup)  # type: ignore[attr-defined]
    runner.start(__import__, "m")
    gate.reached()
    second = runner.start(__import__, "x")
    sys.gate.reached()  # type: ignore[attr-defined]
    sys.gate.open()  # type: ignore[attr-defined]
    until(lambda: second.ident in locks._waiting)
    gate.open()
    runner.join()
    assert trigger.settled


def no_import_fails_while_another_thread_looks_up() -> None:
    count = 400
    modules(m=BODY, **{f"tiny{index}": "" for index in range(count)})
    when_imported("m", lambda _: None)
    before, done, runner = [id(one) for one in sys.meta_path], [], Runner()

    def importer(start: int) -> None:
        try:
            for index in range(start, count, 2):
                __import__(f"tiny{index}")
        finally:
            done.append(1)

    def prober() -> None:
        while len(done) < 2:
            assert importlib.util.find_spec("m") is not None
            sys.modules.pop("m", None)
            __import__("m")

    runner.start(prober)
    runner.start(importer, 0)
    runner.start(importer, 1)
    runner.join()
    assert [id(one) for one in sys.meta_path] == before


def a_lookup_waits_for_no_fork() -> None:
    """A forking thread has the mutex and then takes the lock that a lookup holds."""
    fired: list[Any] = []
    when_imported("overlooked", fired.append)
    module = types.ModuleType("overlooked")
    spec: Any = importlib.machinery.ModuleSpec("overlooked", None)
    spec._initializing, module.__spec__, sys.modules["overlooked"] = True, spec, module
    gate, runner = Gate(), Runner()

    def fork() -> None:
        with locks.state():
            gate.stop_here()

    runner.start(fork)
    gate.reached()
    assert importlib.util.find_spec("colorsys") is not None
    gate.open()
    runner.join()
    importlib.util.find_spec("colorsys")
    spec._initializing = False
    assert fired == [module]
