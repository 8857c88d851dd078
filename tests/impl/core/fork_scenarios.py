"""Forks at every point: before, between, inside a step of the forking thread or of another, around the locks."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import types
from typing import Any

from core_support import DEADLINE, Gate, Runner, blocked_on_import, in_child, kinds, modules, until
from torch_npu_lazy.core import events, locks
from torch_npu_lazy.core.once import Steps, run_once
from torch_npu_lazy.core.trigger import Trigger, when_imported

BODY = "value = 1\n"


def _reasons() -> list[str]:
    return [event.detail for event in events.so_far() if event.kind == "fork"]


class _Setup:
    """A setup of three steps that count; the middle one can be given something to do before and after it counts."""

    def __init__(self, imports: tuple[str, ...] = ()) -> None:
        self.steps = Steps("ledger")
        self.counts = dict.fromkeys("abc", 0)
        self.before: Any = lambda: None
        self.after: Any = lambda: None
        self.run = run_once(imports=imports, steps=self.steps)(self._run)

    def _run(self) -> None:
        for name in "abc":
            self.steps.run(name, self._step, name)

    def _step(self, name: str) -> None:
        if name == "b":
            self.before()
        self.counts[name] += 1
        if name == "b":
            self.after()

    def complete(self) -> None:
        self.run()
        assert self.run.has_run
        assert self.counts == dict.fromkeys("abc", 1), self.counts
        assert self.steps.completed == {"a", "b", "c"}


def before_and_after() -> None:
    setup = _Setup()
    in_child(setup.complete)
    setup.complete()
    in_child(setup.complete)


def after_a_failure() -> None:
    setup = _Setup()
    fails = [ValueError()]

    def fail() -> None:
        if fails:
            raise fails.pop()

    setup.before = fail
    try:
        setup.run()
    except ValueError:
        pass
    in_child(setup.complete)
    setup.complete()


def a_fork_waits_for_the_step_of_another_thread() -> None:
    setup, gate, runner = _Setup(), Gate(), Runner()
    setup.after = gate.stop_here
    runner.start(setup.run)
    gate.reached()

    def opener() -> None:
        # The fork is under way when the forking thread waits in our handler.
        until(lambda: locks._forking)
        gate.open()

    runner.start(opener)

    def child() -> None:
        assert setup.run.has_run, "the fork has caught the setup half done"
        setup.complete()
        assert not setup.steps.interrupted

    in_child(child)
    runner.join()
    setup.complete()


def a_fork_waits_for_the_import_of_a_watched_module() -> None:
    """Without that the child would wait for ever for the lock of a thread that it does not have."""
    sys.gate, runner = Gate(), Runner()  # type: ignore[attr-defined]
    modules(m="import sys\nsys.gate.stop_here()\nvalue = 1\n")
    trigger = when_imported("m", lambda _: None)
    runner.start(__import__, "m")
    sys.gate.reached()  # type: ignore[attr-defined]

    def opener() -> None:
        until(lambda: locks._forking)
        sys.gate.open()  # type: ignore[attr-defined]

    runner.start(opener)

    def child() -> None:
        assert importlib.import_module("m").value == 1
        trigger.ensure()

    in_child(child)
    runner.join()


def an_import_that_stands_still_starts_anew_in_the_child() -> None:
    """With all that is below the watched module: there, too, the lock belongs to a thread that is missing."""
    locks.STALL = 0.2
    sys.gate, runner = Gate(), Runner()  # type: ignore[attr-defined]
    modules(
        m="import m.whole, m.deep.half\nvalue = m.whole.value, m.deep.half.value, m.deep.other.value\n",
        m__whole=BODY,
        m__deep="import m.deep.other\nfrom . import half\n",
        m__deep__other=BODY,
        m__deep__half="import sys\nsys.gate.stop_here()\nvalue = 1\n",
    )
    trigger = when_imported("m", lambda _: None)
    runner.start(__import__, "m")
    sys.gate.reached()  # type: ignore[attr-defined]

    def child() -> None:
        whole = sys.modules["m.whole"]
        sys.gate.open()  # type: ignore[attr-defined]
        assert importlib.import_module("m").value == (1, 1, 1)
        assert sys.modules["m"].whole is whole
        assert trigger.settled

    in_child(child)
    sys.gate.open()  # type: ignore[attr-defined]
    runner.join()
    assert trigger.settled


def a_thread_that_stands_still_is_not_waited_for() -> None:
    locks.STALL = 0.2
    setup, gate, runner = _Setup(), Gate(), Runner()
    setup.before = gate.stop_here
    runner.start(setup.run)
    gate.reached()

    def child() -> None:
        assert setup.steps.interrupted == ["b"]
        assert (setup.run._is_running, setup.run._running_thread) == (False, None)
        setup.before = lambda: None
        setup.complete()

    in_child(child)
    assert any("stood still" in reason for reason in _reasons())
    gate.open()
    runner.join()
    setup.complete()


def a_child_of_a_stalled_callback_can_import_and_set_up() -> None:
    locks.STALL = 0.2
    root = modules(pkg__m=BODY)
    assert root
    setup, gate, runner = _Setup(("pkg.m",)), Gate(), Runner()
    setup.before = gate.stop_here
    trigger = when_imported("pkg.m", lambda _: setup.run())
    runner.start(setup.run)
    gate.reached()

    def child() -> None:
        setup.before = lambda: None
        import pkg.m  # type: ignore[import-not-found]

        assert pkg.m.value == 1
        trigger.ensure()
        setup.complete()

    in_child(child)
    gate.open()
    runner.join()
    setup.complete()
    assert trigger.settled


def a_child_of_a_stalled_ending_can_import_and_set_up() -> None:
    locks.STALL = 0.2
    gate, runner = Gate(), Runner()
    blocking = [True]
    sys.watch = lambda: when_imported("m", lambda _: blocking and gate.stop_here())  # type: ignore[attr-defined]
    modules(m="import sys\nsys.trigger = sys.watch()\nvalue = 1\n")
    runner.start(__import__, "m")
    gate.reached()
    trigger: Trigger = sys.trigger  # type: ignore[attr-defined]

    def child() -> None:
        blocking.clear()
        assert importlib.import_module("m").value == 1
        trigger.ensure()
        assert trigger.settled

    in_child(child)
    gate.open()
    runner.join()
    assert trigger.settled


def a_fork_inside_a_step_repeats_it_in_the_child_and_runs_the_rest() -> None:
    for undone in (True, False):
        setup = _Setup()

        def fork(setup: _Setup = setup, undone: bool = undone) -> None:
            def child() -> None:
                setup.before = setup.after = lambda: None
                setup.run()
                assert setup.run.has_run
                assert setup.counts == {"a": 1, "b": 1 if undone else 2, "c": 1}
                assert setup.steps.interrupted == ["b"]

            in_child(child)

        if undone:
            setup.before = fork
        else:
            setup.after = fork
        setup.complete()


def a_step_that_forks_does_not_do_so_for_ever() -> None:
    setup = _Setup()
    setup.before = lambda: in_child(child)
    depth = [0]

    def child() -> None:
        depth[0] += 1
        assert depth[0] <= 2, "the child of a child repeats the step too"
        setup.run()
        assert setup.run.has_run
        assert setup.counts["c"] == 1

    setup.complete()


def a_child_that_returns_through_the_step_ends_the_setup() -> None:
    setup = _Setup()
    pids = []
    setup.after = lambda: pids.append(os.fork())
    setup.complete()
    if pids == [0]:
        os._exit(0)
    assert os.waitpid(pids[0], 0)[1] == 0


def a_fork_inside_a_plain_function_is_re_entry_in_the_child() -> None:
    seen = []

    @run_once
    def setup() -> None:
        def child() -> None:
            assert setup() is None
            assert not setup.has_run

        in_child(child)
        seen.append(1)

    setup()
    assert seen == [1]


def a_fork_inside_a_callback() -> None:
    modules(m=BODY)

    def callback(module: types.ModuleType) -> None:
        def child() -> None:
            import m  # type: ignore[import-not-found]

            assert m is module
            assert not trigger.fired

        in_child(child)

    trigger = when_imported("m", callback)
    __import__("m")
    assert trigger.settled


def a_fork_by_the_thread_that_the_setup_waits_for() -> None:
    """The step imports x, whose body forks: waiting would be a circle. The child gets what the fork has caught."""
    setup, gate, runner = _Setup(), Gate(), Runner()
    sys.gate, sys.fork = Gate(), None  # type: ignore[attr-defined]
    modules(x="import sys\nsys.gate.stop_here()\nsys.fork()\n")

    def imports_x() -> None:
        gate.stop_here()
        __import__("x")

    setup.before = imports_x

    def child() -> None:
        assert setup.steps.interrupted == ["b"]
        setup.before = lambda: None
        setup.complete()

    sys.fork = lambda: in_child(child)  # type: ignore[attr-defined]
    first = runner.start(setup.run)
    gate.reached()
    runner.start(__import__, "x")
    sys.gate.reached()  # type: ignore[attr-defined]
    gate.open()
    until(lambda: blocked_on_import(first))
    sys.gate.open()  # type: ignore[attr-defined]
    runner.join()
    assert any("waits for the forking one" in reason for reason in _reasons())
    setup.complete()


def a_fork_inside_a_setup_that_another_setup_waits_for() -> None:
    inner, outer, runner = _Setup(), _Setup(), Runner()
    gate = Gate()
    outer.before = inner.run

    def fork() -> None:
        gate.stop_here()

        def child() -> None:
            assert outer.steps.interrupted == ["b"]
            inner.run()
            assert inner.run.has_run
            outer.complete()

        in_child(child)

    inner.after = fork
    runner.start(inner.run)
    gate.reached()
    second = runner.start(outer.run)
    until(lambda: second.ident in locks._waiting)
    gate.open()
    runner.join()
    inner.complete()
    outer.complete()


def two_threads_at_work_fork_at_once() -> None:
    meet, runner = threading.Barrier(2), Runner()
    setups = [_Setup(), _Setup()]
    for setup in setups:

        def fork(setup: _Setup = setup) -> None:
            def child() -> None:
                setup.after = lambda: None
                setup.run()

            meet.wait(DEADLINE)
            in_child(child)

        setup.after = fork
        runner.start(setup.run)
    runner.join()
    for setup in setups:
        setup.complete()


def the_scope_lock_is_free_in_the_child_of_another_thread() -> None:
    scope, gate, runner = locks.ScopeLock("scope"), Gate(), Runner()

    def holder() -> None:
        with scope:
            gate.stop_here()

    def child() -> None:
        assert scope.owner is None
        with scope, scope:
            pass

    runner.start(holder)
    gate.reached()
    in_child(child)
    assert scope.owner is not None
    gate.open()
    runner.join()


def the_scope_lock_stays_with_the_thread_that_forks() -> None:
    scope = locks.ScopeLock("scope")

    def child() -> None:
        assert scope.owner == threading.get_ident()
        with scope:
            pass
        assert scope.owner == threading.get_ident()

    with scope:
        in_child(child)
    assert scope.owner is None


def waiters_of_the_parent_are_not_in_the_child() -> None:
    locks.STALL = 0.2
    setup, gate, runner = _Setup(), Gate(), Runner()
    setup.before = gate.stop_here
    runner.start(setup.run)
    gate.reached()
    waiter = runner.start(setup.run)
    until(lambda: waiter.ident in locks._waiting)

    def child() -> None:
        assert not locks._waiting
        setup.before = lambda: None
        setup.complete()

    in_child(child)
    gate.open()
    runner.join()


def a_fork_at_any_instant_of_an_import() -> None:
    """Not forced: many forks while another thread imports and sets up. Each child can use the module at once."""
    count = 12
    names = [f"m{index}" for index in range(count)]
    modules(**dict.fromkeys(names, BODY))
    triggers = [when_imported(name, lambda _: None) for name in names]
    start, runner = threading.Barrier(2), Runner()

    def importer() -> None:
        for name in names:
            start.wait(DEADLINE)
            __import__(name)

    runner.start(importer)
    for name, trigger in zip(names, triggers, strict=True):

        def child(name: str = name, trigger: Trigger = trigger) -> None:
            assert importlib.import_module(name).value == 1
            trigger.ensure()

        start.wait(DEADLINE)
        in_child(child)
    runner.join()


def the_handler_is_registered_once_and_events_name_the_fork() -> None:
    setup, gate, runner = _Setup(), Gate(), Runner()
    setup.after = gate.stop_here
    runner.start(setup.run)
    gate.reached()
    runner.start(lambda: (until(lambda: locks._forking), gate.open()))
    in_child(lambda: None)
    runner.join()
    assert kinds("waited") == ["fork"]


def a_failing_fork_leaves_the_locks_free() -> None:
    import resource

    setup = _Setup()
    locks.state()
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.getuid() == 0:
        # Root forks whatever the limit: take the handlers' way without the fork.
        locks._before_fork()
        locks._in_parent()
    else:
        resource.setrlimit(resource.RLIMIT_NPROC, (0, hard))
        try:
            os.fork()
        except OSError:
            pass
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    runner = Runner()
    runner.start(setup.run)
    runner.join()
    setup.complete()
