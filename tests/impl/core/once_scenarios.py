"""run_once, Steps and the scope lock, under threads."""

from __future__ import annotations

import inspect
import sys
import threading

from core_support import DEADLINE, Gate, Runner, blocked_on_import, kinds, modules, until
from torch_npu_lazy.core import events, locks
from torch_npu_lazy.core.once import Steps, run_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch_npu_lazy.core.once import RunOnce


def it_is_a_function_with_the_metadata_of_the_wrapped_one() -> None:
    @run_once
    def setup(a: int, *, b: int = 2) -> int:
        """Set up."""
        return a + b

    function: object = setup
    assert inspect.isfunction(function)
    assert (function.__name__, function.__doc__) == ("setup", "Set up.")
    assert str(inspect.signature(function)) == "(a: 'int', *, b: 'int' = 2) -> 'int'"
    assert (setup.has_run, setup._is_running, setup._running_thread) == (False, False, None)
    assert setup(1, b=3) == 4
    assert setup(1) is None
    assert (setup.has_run, setup._is_running, setup._running_thread) == (True, False, None)


def its_marks_tell_who_runs_it() -> None:
    seen = []

    @run_once
    def setup() -> None:
        seen.append((setup.has_run, setup._is_running, setup._running_thread))

    setup()
    assert seen == [(False, True, threading.get_ident())]


def many_callers_run_it_once_and_return_when_it_is_done() -> None:
    runs, start, runner = [], threading.Barrier(8), Runner()

    @run_once
    def setup() -> None:
        runs.append(1)
        until(lambda: len(locks._waiting) == 7)
        runs.append(2)

    def caller() -> None:
        start.wait(DEADLINE)
        setup()
        assert setup.has_run
        assert runs == [1, 2]

    for _ in range(8):
        runner.start(caller)
    runner.join()


def waiters_of_a_failing_run_run_it_themselves_one_after_the_other() -> None:
    running, most, start, runner = [], [], threading.Barrier(4), Runner()

    @run_once
    def setup() -> None:
        running.append(1)
        most.append(len(running))
        if len(most) == 1:
            until(lambda: len(locks._waiting) == 3)
        running.pop()
        raise ValueError(len(most))

    def caller() -> None:
        start.wait(DEADLINE)
        setup()

    for _ in range(4):
        runner.start(caller)
    errors = runner.join(errors=True)
    assert sorted(error.args for error in errors) == [(1,), (2,), (3,), (4,)]
    assert most == [1, 1, 1, 1]
    assert (setup.has_run, setup._is_running, setup._running_thread) == (False, False, None)


def the_first_success_ends_it() -> None:
    attempts, start, runner = [], threading.Barrier(6), Runner()

    @run_once
    def setup() -> None:
        attempts.append(1)
        if len(attempts) == 1:
            until(lambda: len(locks._waiting) == 5)
        if len(attempts) < 3:
            raise RuntimeError("not yet")

    def caller() -> None:
        start.wait(DEADLINE)
        setup()
        assert setup.has_run

    for _ in range(6):
        runner.start(caller)
    assert len(runner.join(errors=True)) == 2
    assert len(attempts) == 3


def an_interrupt_leaves_it_free() -> None:
    for error in (KeyboardInterrupt, SystemExit, GeneratorExit):
        attempts = []

        @run_once
        def setup(error: type[BaseException] = error, attempts: list[int] = attempts) -> None:
            attempts.append(1)
            if len(attempts) == 1:
                raise error

        try:
            setup()
        except error:
            pass
        else:
            raise AssertionError("swallowed")
        assert (setup.has_run, setup._is_running) == (False, False)
        setup()
        assert setup.has_run


def re_entry_returns_at_once_and_shows() -> None:
    seen = []

    @run_once
    def setup() -> int:
        seen.append((setup(), setup.has_run))
        return 1

    assert setup() == 1
    assert seen == [(None, False)]
    assert kinds("setup") == ["run", "skip", "done"]


def a_retry_runs_the_failed_step_and_the_later_ones_only() -> None:
    for failing in "abc":
        counts = dict.fromkeys("abc", 0)
        steps, fails = Steps("ledger"), [failing]

        def step(name: str, counts: dict[str, int] = counts, fails: list[str] = fails) -> None:
            if fails == [name]:
                fails.clear()
                raise LookupError(name)
            counts[name] += 1

        @run_once
        def setup(steps: Steps = steps, step=step) -> None:
            for name in "abc":
                steps.run(name, step, name)

        try:
            setup()
        except LookupError:
            assert steps.completed == {name for name in "abc" if name < failing}
        else:
            raise AssertionError("swallowed")
        setup()
        assert counts == dict.fromkeys("abc", 1)
        assert steps.completed == {"a", "b", "c"}


def a_settled_call_takes_no_lock() -> None:
    @run_once
    def setup() -> None: ...

    setup()
    gate, runner = Gate(), Runner()

    def hold() -> None:
        with locks.state():
            gate.stop_here()

    runner.start(hold)
    gate.reached()
    setup()
    gate.open()
    runner.join()


def _setup_that_imports_x() -> tuple[RunOnce, Gate]:
    gate = Gate()

    @run_once
    def setup() -> None:
        gate.stop_here()
        import x  # type: ignore[import-not-found]

        assert x.whole, "the step got half a module"

    sys.modules["shared"] = sys  # a place that the bodies can reach
    sys.setup, sys.gate = setup, Gate()  # type: ignore[attr-defined]
    modules(x="import sys\nsys.gate.stop_here()\nsys.setup()\nsys.ran = sys.setup.has_run\nwhole = True\n")
    return setup, gate


def a_step_may_import_a_module_whose_body_waits_for_the_setup() -> None:
    setup, gate = _setup_that_imports_x()
    runner = Runner()
    first = runner.start(setup)
    gate.reached()
    second = runner.start(__import__, "x")
    sys.gate.reached()  # type: ignore[attr-defined]
    sys.gate.open()  # type: ignore[attr-defined]
    until(lambda: second.ident in locks._waiting)
    gate.open()
    runner.join()
    assert first.ident
    assert setup.has_run
    assert sys.ran is False  # type: ignore[attr-defined]
    assert "skip" in kinds("setup")


def a_module_body_may_call_the_setup_whose_step_waits_for_it() -> None:
    setup, gate = _setup_that_imports_x()
    runner = Runner()
    first = runner.start(setup)
    gate.reached()
    runner.start(__import__, "x")
    sys.gate.reached()  # type: ignore[attr-defined]
    gate.open()
    until(lambda: blocked_on_import(first))
    sys.gate.open()  # type: ignore[attr-defined]
    runner.join()
    assert setup.has_run


def two_setups_that_call_each_other_in_two_threads_end() -> None:
    meet, runner = threading.Barrier(2), Runner()

    def meeting() -> None:
        if not one.has_run and not two.has_run:
            meet.wait(DEADLINE)

    @run_once
    def one() -> None:
        meeting()
        two()

    @run_once
    def two() -> None:
        meeting()
        one()

    runner.start(one)
    runner.start(two)
    runner.join()
    assert one.has_run
    assert two.has_run


def what_it_imports_comes_before_the_claim() -> None:
    gate = Gate()
    sys.gate = gate  # type: ignore[attr-defined]
    modules(needed="import sys\nsys.gate.stop_here()\n")

    @run_once(imports=["needed"])
    def setup() -> None:
        assert "needed" in sys.modules

    runner = Runner()
    runner.start(__import__, "needed")
    gate.reached()
    caller = runner.start(setup)
    until(lambda: blocked_on_import(caller))
    assert setup._is_running is False
    gate.open()
    runner.join()
    assert setup.has_run


def what_it_imports_may_be_missing() -> None:
    @run_once(imports=["no_such_module"])
    def setup() -> None: ...

    for _ in range(2):
        try:
            setup()
        except ModuleNotFoundError:
            assert (setup.has_run, setup._is_running) == (False, False)
        else:
            raise AssertionError("swallowed")


def the_scope_lock_excludes_and_nests() -> None:
    scope, inside, runner = locks.ScopeLock("scope"), [], Runner()

    def user() -> None:
        for _ in range(50):
            with scope, scope:
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    for _ in range(4):
        runner.start(user)
    runner.join()
    assert scope.owner is None


def the_scope_lock_says_so_instead_of_hanging() -> None:
    scope, held, runner = locks.ScopeLock("the scope"), Gate(), Runner()
    sys.scope, sys.gate = scope, Gate()  # type: ignore[attr-defined]
    modules(
        x="import sys\n"
        "sys.gate.stop_here()\n"
        "try:\n"
        "    sys.scope.__enter__()\n"
        "except RuntimeError as error:\n"
        "    sys.said = str(error)\n"
    )

    def holder() -> None:
        with scope:
            held.stop_here()
            __import__("x")

    first = runner.start(holder)
    held.reached()
    runner.start(__import__, "x")
    sys.gate.reached()  # type: ignore[attr-defined]
    held.open()
    until(lambda: blocked_on_import(first))
    sys.gate.open()  # type: ignore[attr-defined]
    runner.join()
    assert sys.said.startswith("the scope is held by thread")  # type: ignore[attr-defined]
    assert scope.owner is None


def the_record_is_bounded() -> None:
    for _ in range(events.LIMIT + 5):
        events.record("test", "again")
    assert len(events.so_far()) == events.LIMIT
    assert events.explain()[-1] == "5 later events were not kept"
