"""`probe.each`: every value has its turn, and none that fails is lost, wherever it is judged."""

from __future__ import annotations

import pytest
from fakes import Run, Write, by_hand

JUDGE = """
def judge(number):
    probe.check(number % 2 == 0, "it is even")

"""


def test_values_that_pass_are_recorded_with_their_labels(write: Write) -> None:
    path = write(
        """
        def sums(a, b=0):
            probe.equal(a + b, 3, "the sum")

        probe.each([(1, 2), (3,)], sums)
        probe.each({"three": 3}, sums)
        probe.each(["x", len], lambda value: probe.each([1], lambda _: probe.check(value, "it is there")))
        probe.equal(3, 3, "what comes after")
        """
    )
    done = by_hand(path, "order=a")
    assert done.stdout.splitlines()[1:] == [
        "ok    1, 2: the sum is equal",
        "ok    3: the sum is equal",
        "ok    three: the sum is equal",
        "ok    x: 1: it is there",
        "ok    len: 1: it is there",
        "ok    what comes after is equal",
        "6 checks, 0 failed",
    ]


@pytest.mark.parametrize("forked", [False, True])
def test_a_value_that_fails_does_not_end_the_others(run: Run, forked: bool) -> None:
    result = run(
        f"""
        def judge(number):
            probe.check(number != 1, "it is not one", number=number)
            if number == 2:
                raise KeyError("two")

        probe.each([0, 1, 2, 3], judge, forked={forked})
        probe.note("after", True)
        """
    )
    returns = "2: judge returns in a forked child" if forked else "2: judge returns"
    assert result["outcome"] == "fail"
    assert result["checks"] == 5
    assert result["failure"]["message"] == "1: it is not one"
    assert result["failure"]["found"] == f"number = 1\nand {returns}"
    assert result["notes"] == {}  # the first failure is raised after the last turn


def test_an_exception_says_what_and_where(write: Write) -> None:
    done = by_hand(write('def judge(text):\n    return int(text)\n\nprobe.each(["7", "x"], judge)'), "order=a")
    assert done.returncode == 1
    assert "FAIL  x: judge returns\n  expected: no exception\n  found:    ValueError: invalid literal" in done.stdout
    assert "1 checks, 1 failed" in done.stdout


@pytest.mark.parametrize("forked", [False, True])
def test_the_label_reaches_threads_and_children(run: Run, forked: bool) -> None:
    result = run(
        f"""
        def judge(word):
            fails = lambda: probe.equal(word, "", "the word")
            probe.each(["thread"], lambda _: probe.thread(fails).join())
            probe.check(False, "it is never asked")

        probe.each(["w"], judge, forked={forked})
        """
    )
    assert result["failure"]["message"] == "w: thread: the word differs"
    assert result["failure"]["found"] == "'w'"


def test_a_swallowed_failure_counts(run: Run, write: Write) -> None:
    body = f"{JUDGE}try:\n    probe.each([1, 2], judge)\nexcept Exception:\n    pass\n"
    result = run(body)
    assert (result["outcome"], result["failure"]["message"]) == ("fail", "1: it is even")
    assert by_hand(write(body), "order=a").returncode == 1


def test_a_nested_interpreter_fails_after_the_last_turn(run: Run) -> None:
    program = f"from harness import probe\n{JUDGE}probe.each([1, 3, 4], judge)\nprint('not reached')"
    result = run(
        f"""
        done = probe.python({program!r}, check=False)
        print(done.stdout + done.stderr)
        probe.equal(done.returncode, 0, "its end")
        """
    )
    assert result["failure"]["found"] == "1"
    assert "1: it is even" in result["stdout"]
    assert "3: it is even" in result["stdout"]
    assert "not reached" not in result["stdout"]


@pytest.mark.parametrize(
    ("call", "outcome", "text"),
    [
        ("probe.each([], len)", "harness-error", "needs values"),
        ("probe.each([1, 1], print)", "harness-error", "it has ['1', '1']"),
        ("probe.each([1], lambda _: probe.param('nothing'))", "harness-error", "no parameter 'nothing'"),
        ("probe.each([1], lambda _: probe.param('nothing'), forked=True)", "harness-error", "no parameter 'nothing'"),
        ("probe.each([1, 2], lambda _: probe.unsupported('not here'))", "unsupported", "not here"),
        ("probe.each([1, 2], lambda _: probe.unsupported('not here'), forked=True)", "unsupported", "not here"),
        ("probe.each([1, 2], lambda _: exit(3))", "exit", "SystemExit(3)"),
        ("probe.each([1, 2], lambda _: exit(3), forked=True)", "fail", "SystemExit: 3"),
    ],
)
def test_what_ends_the_case_at_once(run: Run, call: str, outcome: str, text: str) -> None:
    result = run(call)
    assert result["outcome"] == outcome, result
    assert text in str(result["reason"] or result["failure"])


def test_labels_are_gone_after_a_failure(run: Run) -> None:
    result = run(f"{JUDGE}try:\n    probe.each([1], judge)\nexcept Exception:\n    probe.check(False, 'no label')\n")
    assert result["failure"]["found"].endswith("and no label")
