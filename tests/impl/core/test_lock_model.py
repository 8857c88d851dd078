"""No interleaving of the model deadlocks, and whoever returns from an import sees the setup finished or its error kept.
The search is shown to find the deadlocks of other orders first."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from lock_model import Deadlock, Model, Operation

# What a thread does. M is the watched module, X some module whose body needs the setup and which a step imports.
STEP_IMPORTS_X: list[Operation] = [("import", "X"), ("loaded", "X")]
SETUP: list[Operation] = [("run", "S"), *STEP_IMPORTS_X, ("ran", "S")]
IMPORTER: list[Operation] = [("import", "M"), ("body", "M"), *SETUP, ("loaded", "M"), ("check", "S")]
# A direct call imports M before it claims; if M is new to it, its own import runs the callback.
IMPORT_M_FIRST: list[Operation] = [("import", "M"), ("body", "M"), *SETUP, ("loaded", "M")]
CALL: list[Operation] = [*IMPORT_M_FIRST, *SETUP]
DIRECT: list[Operation] = [*CALL, ("check", "S")]
IN_X: list[Operation] = [("import", "X"), *CALL, ("loaded", "X")]
RE_ENTRANT: list[Operation] = [
    *[("import", "M"), ("body", "M"), ("run", "S"), ("import", "M"), ("loaded", "M")],
    *[("run", "S"), ("ran", "S"), *STEP_IMPORTS_X, ("ran", "S"), ("loaded", "M"), ("check", "S")],
]
FAILING: list[Operation] = [
    *[("import", "M"), ("body", "M"), ("run", "S"), *STEP_IMPORTS_X, ("fails", "S"), ("loaded", "M"), ("check", "S")],
    *[*CALL, ("check", "S")],
]
SCOPE: list[Operation] = [("enter", "L"), *CALL, ("leave", "L")]
SCOPE_IN_SETUP: list[Operation] = [
    *[("import", "M"), ("body", "M"), ("run", "S"), ("enter", "L"), ("leave", "L"), ("ran", "S"), ("loaded", "M")],
    ("check", "S"),
]
SCOPE_IN_X: list[Operation] = [("import", "X"), ("enter", "L"), ("leave", "L"), ("loaded", "X")]
FORKER: list[Operation] = [("fork", "M")]
FORK_IN_SETUP: list[Operation] = [
    ("import", "M"),
    ("body", "M"),
    ("run", "S"),
    ("fork", "M"),
    ("ran", "S"),
    ("loaded", "M"),
]
FORK_IN_X: list[Operation] = [("import", "X"), ("fork", "M"), ("loaded", "X")]
FORK_IN_SCOPE: list[Operation] = [("enter", "L"), ("fork", "M"), ("leave", "L")]

THREADS = {
    "importer": IMPORTER,
    "direct": DIRECT,
    "in x": IN_X,
    "re-entrant": RE_ENTRANT,
    "failing": FAILING,
    "scope": SCOPE,
    "scope in setup": SCOPE_IN_SETUP,
    "scope in x": SCOPE_IN_X,
    "forker": FORKER,
    "fork in setup": FORK_IN_SETUP,
    "fork in x": FORK_IN_X,
    "fork in scope": FORK_IN_SCOPE,
}
SETUP_OF_ITS_OWN: list[Operation] = [("run", "S"), ("import", "M"), ("loaded", "M"), ("ran", "S")]


def test_the_search_finds_the_deadlock_of_taking_the_setup_first() -> None:
    """The other order: the setup is claimed, then the module's lock is asked for, while an importer holds that."""
    with pytest.raises(Deadlock) as caught:
        Model(IMPORTER[:-1], SETUP_OF_ITS_OWN, sees_imports=False).explore()
    assert "thread 1: run S" in str(caught.value)
    assert "thread 1: import M (waits)" in str(caught.value)
    assert "thread 0: run S (waits)" in str(caught.value)


def test_the_order_alone_is_not_enough_if_a_step_imports() -> None:
    with pytest.raises(Deadlock):
        Model(DIRECT, IN_X, sees_imports=False).explore()


def test_the_order_alone_is_enough_if_no_step_imports() -> None:
    plain = [operation for operation in DIRECT if operation[1] != "X"]
    importer = [operation for operation in IMPORTER if operation[1] != "X"]
    Model(plain, importer, plain, sees_imports=False).explore()


def test_even_the_wrong_order_ends_if_waits_are_seen() -> None:
    Model(IMPORTER[:-1], SETUP_OF_ITS_OWN).explore()


def test_in_the_wrong_order_an_import_returns_with_the_setup_undone() -> None:
    """The thread that has claimed the setup imports the module itself, and lets go of the module first."""
    with pytest.raises(AssertionError, match="thread 0 returned without S"):
        Model(IMPORTER, SETUP_OF_ITS_OWN).explore()


def test_the_check_can_fail() -> None:
    with pytest.raises(AssertionError, match="returned without S"):
        Model([("import", "M"), ("body", "M"), ("loaded", "M"), ("check", "S")]).explore()


def test_two_setups_that_call_each_other() -> None:
    one: list[Operation] = [("run", "S"), ("run", "T"), ("ran", "T"), ("ran", "S")]
    two: list[Operation] = [("run", "T"), ("run", "S"), ("ran", "S"), ("ran", "T")]
    with pytest.raises(Deadlock):
        Model(one, two, sees_imports=False).explore()
    Model(one, two, one).explore()


@pytest.mark.parametrize("names", list(combinations_with_replacement(THREADS, 2)), ids="+".join)
def test_no_two_threads_deadlock(names: tuple[str, ...]) -> None:
    assert Model(*(THREADS[name] for name in names)).explore() > 1


@pytest.mark.parametrize("first", list(THREADS))
def test_no_three_threads_deadlock(first: str) -> None:
    order = list(THREADS)
    for rest in combinations_with_replacement(order[order.index(first) :], 2):
        states = Model(THREADS[first], *(THREADS[name] for name in rest)).explore()
        assert states > 1, f"{first}, {', '.join(rest)}: nothing was explored"
