"""The probe's threads, gates and forked children: an interleaving is forced, and whatever does not end is told."""

from __future__ import annotations

from typing import Any

import psutil
import pytest
from fakes import Judge, Run, Write, by_hand

from harness import header


def found(result: dict[str, Any]) -> str:
    assert result["outcome"] == "fail", result
    return "\n".join(str(result["failure"][key]) for key in ("message", "expected", "found"))


def test_a_forked_child_hands_back_result_checks_and_notes(run: Run) -> None:
    result = run(
        """
        import atexit, os, threading

        quit = threading.Event()
        other = probe.thread(quit.wait)  # a fork beside another thread
        parent = os.getpid()
        atexit.register(print, "the end")

        def child(word):
            probe.check(os.getpid() != parent, "it is another process")
            probe.note("place", "child")
            print("printed once")
            return {"word": word, "child": probe.forked(lambda: os.getpid() != parent)}

        print("printed once too")
        probe.equal(probe.forked(child, "hello"), {"word": "hello", "child": True}, "the result")
        probe.equal(probe.thread(probe.forked, child, "inside").join()["word"], "inside", "the result from a thread")
        quit.set()
        other.join()
        """
    )
    assert result["outcome"] == "pass", result
    assert (result["checks"], result["notes"]) == (4, {"place": "child"})
    assert result["stdout"].splitlines() == [
        "printed once too",
        "printed once",
        "printed once",
        "the end",
    ]


@pytest.mark.parametrize(
    ("child", "texts"),
    [
        ("probe.equal(1, 2, 'one')", ["one differs", "2", "1"]),
        (
            "try:\n        probe.check(False, 'it holds')\n    except BaseException:\n        return 1",
            ["it holds"],
        ),
        ("raise KeyError('lost')", ["child returns in a forked child", "no exception", "KeyError: 'lost'"]),
        ("raise SystemExit(3)", ["no exception", "SystemExit: 3"]),
        ("os._exit(3)", ["a result", "exit code 3 before it returned"]),
        ("os.kill(os.getpid(), signal.SIGSEGV)", ["no signal", "killed by SIGSEGV; its stacks:", "in child"]),
        ("threading.Event().wait()", ["an end within 1 s", "it still ran, and was killed; its stacks:", "in child"]),
        (
            "probe.gate('nobody comes').wait()",
            ["the gate 'nobody comes' opens", "1 of 1 arrive", "in child"],
        ),
    ],
)
def test_however_a_forked_child_ends_badly_it_is_told(run: Run, child: str, texts: list[str]) -> None:
    body = f"import os, signal, threading\n\ndef child():\n    {child}\n\nprobe.forked(child, timeout=1)\n"
    result = run(body)
    for text in texts:
        assert text in found(result)
    assert (
        any(line.endswith(" in child") for line in result["failure"]["traceback"])
        or "in child" in found(result)
        or ("os._exit" in child)
    )
    assert psutil.Process().children(recursive=True) == []


@pytest.mark.parametrize(
    ("child", "outcome", "reason"),
    [
        ("return object()", "harness-error", "what child returns cannot leave the forked child"),
        ("return probe.param('nonesuch')", "harness-error", "no parameter 'nonesuch'"),
        ("probe.unsupported('no such thing')", "unsupported", "no such thing"),
    ],
)
def test_a_forked_child_ends_the_case(run: Run, child: str, outcome: str, reason: str) -> None:
    result = run(f"def child():\n    {child}\n\nprobe.forked(child)\nprobe.check(True, 'never reached')\n")
    assert (result["outcome"], result["checks"]) == (outcome, 0), result
    assert reason in result["reason"]


def test_a_thread_hands_back_result_and_exception(run: Run) -> None:
    result = run(
        """
        probe.equal(probe.thread(divmod, 7, 2).join(), (3, 1), "the result")
        failing = probe.thread(int, "seven")
        with probe.raises((KeyError, ValueError), "seven"):
            failing.join()
        """
    )
    assert (result["outcome"], result["checks"]) == ("pass", 2), result


def test_a_gate_forces_an_order(run: Run) -> None:
    result = run(
        """
        import threading

        order = []
        begun, go_on = probe.gate("first has begun"), probe.gate("second is done")
        together = probe.gate("all are here", parties=3)

        def first():
            together.meet()
            order.append("first begins")
            begun.arrive()
            go_on.wait()
            order.append("first ends")

        def second():
            together.meet()
            begun.wait()
            order.append("second")
            go_on.arrive()

        threads = probe.thread(first), probe.thread(second)
        probe.check(not together.is_open, "one is missing")
        together.meet()
        for thread in threads:
            thread.join()
        probe.equal(order, ["first begins", "second", "first ends"], "order")

        lock = threading.Condition()
        ready = []

        def waits_in_judged_code():
            with lock:
                lock.wait_for(lambda: ready)

        waiter = probe.thread(waits_in_judged_code)
        waiter.reach("wait")
        with lock:
            ready.append(1)
            lock.notify_all()
        waiter.join()
        """
    )
    assert (result["outcome"], result["checks"]) == ("pass", 2), result


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (
            "probe.gate('second is done', 2).wait(0.1)",
            ["the gate 'second is done' opens", "2 of 2 arrive within 0.1 s", "0 of 2", "in main"],
        ),
        ("probe.thread(hang).join(0.1)", ["the thread hang ends", "within 0.1 s", "in hang", "thread MainThread:"]),
        ("probe.thread(hang).reach('nonesuch', 0.1)", ["the thread hang reaches nonesuch", "in hang"]),
        ("probe.thread(int, 'x').reach('nonesuch')", ["the thread int reaches", "it has ended with ValueError: inv"]),
        ("probe.thread(probe.equal, 1, 2, 'one').join()", ["one differs"]),
    ],
)
def test_a_wait_that_overruns_shows_all_stacks(run: Run, body: str, texts: list[str]) -> None:
    result = run(
        f"import threading\n\ndef hang():\n    threading.Event().wait()\n\ndef main():\n    {body}\n\nmain()\n"
    )
    for text in texts:
        assert text in found(result)


def test_a_wait_without_a_limit_ends_before_the_case_does(judge: Judge, write: Write) -> None:
    path = write("probe.gate('nobody comes').wait()\n")
    path.write_text(path.read_text().replace("timeout = 30", "timeout = 8"))
    assert "the gate 'nobody comes' opens" in found(judge("honest", "", case=header.read(path), order="a"))
    hand = by_hand(path, "order=a")
    assert (hand.returncode, "FAIL  the gate 'nobody comes' opens" in hand.stdout) == (1, True), hand


def test_a_thread_that_nobody_asked_for_is_an_error_of_the_case(run: Run, write: Write) -> None:
    body = "probe.check(True, 'x')\nprobe.thread(int, 'x')\n"
    result = run(body)
    assert result["outcome"] == "harness-error"
    assert "ends without join() of what probe.thread has started: int" in result["reason"]
    assert by_hand(write(body), "order=a").returncode == 1
