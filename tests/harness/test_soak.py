"""Soaks: the same delays for the same seed, and a point that does not end alike every time is a flake."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from fakes import Judge, Suite, Write

from harness import header, soak
from harness.inside import jitter

FLAKY = """
import os, sys, zlib
ways = {ways!r}
way = ways[zlib.crc32(os.environ["HARNESS_SOAK"].encode()) % len(ways)]
probe.check(sys.getswitchinterval() < 2e-6, "threads change places as often as they can")
if way == "crash":
    os.abort()
probe.check(way == "pass", "it works")
"""
KNOWN = """
[[expect]]
rule = "added/case/flaky"
outcome = "fail"
reason = "it is broken"
"""


def delays(monkeypatch: pytest.MonkeyPatch, seed: str) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(jitter, "_seed", seed)
    monkeypatch.setattr(jitter, "_visits", {})
    monkeypatch.setattr(jitter.time, "sleep", slept.append)
    for place in ("a", "b", "a", "c") * 25:
        jitter.delay(place, 0.5, 2.0)
    return slept


def test_a_seed_gives_its_delays_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first, again, other = (delays(monkeypatch, seed) for seed in ("8f3a.1", "8f3a.1", "8f3a.2"))
    assert first == again != other
    assert 20 < len(first) < 80
    assert all(0 < seconds < 2 for seconds in first)
    monkeypatch.setattr(jitter, "_seed", None)
    jitter.delay("a", 1.0, 1.0)
    assert len(again) == len(first)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["serial", "xdist"])
def test_a_flake_fails_and_names_both_ends(suite: Callable[..., Suite], workers: list[str]) -> None:
    honest = suite()
    honest.add("flaky.py", FLAKY.format(ways=["pass", "fail", "crash"]))
    honest.add("steady.py", 'probe.check(True, "x")')
    result = honest.apart("cases", "--rule=added", "--soak=6", "--soak-seed=8f3a", *workers)
    ends = [["pass", "fail", "crash"][zlib.crc32(f"8f3a.{n}".encode()) % 3] for n in range(1, 7)]
    assert len(set(ends)) == 3
    result.assert_outcomes(passed=6 + ends.count("pass"), failed=6 - ends.count("pass"))
    assert honest.outcomes() == {"added/case/flaky": "flake", "added/case/steady": "pass"}
    report = honest.report()
    assert report["suite"]["selected"] == 2
    flake, steady = (rule["points"][0] for rule in report["rules"])
    assert steady["soak"] == {"seed": "8f3a", "asked": 6, "outcomes": {"pass": 6}, "unexpected": []}
    assert flake["soak"]["outcomes"] == {
        {"crash": "crash(SIGABRT)"}.get(end, end): ends.count(end) for end in set(ends)
    }
    assert [entry["outcome"][:4] for entry in flake["soak"]["unexpected"]] == [end[:4] for end in ends if end != "pass"]
    assert "6 repetitions ended in 3 ways: " in flake["failure"]["message"]
    numbers = [number for number, end in enumerate(ends, 1) if end != "pass"]
    commands = [entry["reproduce"] for entry in flake["soak"]["unexpected"]]
    assert all(f" --jitter 8f3a.{number} " in command for number, command in zip(numbers, commands, strict=True))
    result.stdout.fnmatch_lines(["soak: each point 6 times; again with --soak-seed 8f3a"])
    result.stdout.fnmatch_lines(["*only point: flake", "*--jitter 8f3a.*", "2 points: 1 pass, 1 flake"])


@pytest.mark.parametrize(
    ("ways", "outcome", "code"), [(["fail"], "xfail", 0), (["fail", "pass"], "flake", 1), (["pass"], "xpass", 1)]
)
def test_an_expectation_excuses_only_what_fails_each_time(
    suite: Callable[..., Suite],
    ways: list[str],
    outcome: str,
    code: int,
) -> None:
    honest = suite()
    honest.add("flaky.py", FLAKY.format(ways=ways))
    honest.expect(KNOWN)
    assert honest.run("cases/added", "--soak=5", "--soak-seed=1").ret == code
    assert honest.outcomes() == {"added/case/flaky": outcome}


def test_a_race_that_hides_shows_in_a_soak(judge: Judge, write: Write) -> None:
    body = """
        import torch_npu
        both = probe.gate("both are here", parties=2)

        def use():
            both.meet()
            torch_npu.setup(probe.jitter, lambda: None)

        threads = [probe.thread(use), probe.thread(use)]
        for thread in threads:
            thread.join()
        probe.equal(torch_npu.setups, 1, "number of setups")
    """
    case = header.read(write(body, '["a"]'))

    def ends(fake: str, seeds: list[str]) -> set[str]:
        return {judge(fake, "", case=case, soak=seed, order="a")["outcome"] for seed in seeds}

    seeds = [soak.repetition("8f3a", number) for number in range(1, 7)]
    assert "fail" in ends("races", seeds)
    assert ends("honest", seeds) == {"pass"}


def test_one_repetition_is_run_again(judge: Judge, write: Write) -> None:
    case = header.read(write(FLAKY.format(ways=["pass", "fail"]), '["a"]'))
    results = [judge("honest", "", case=case, soak=f"8f3a.{number}", order="a") for number in (1, 1, 2, 2, 3, 3)]
    assert [result["outcome"] for result in results[::2]] == [result["outcome"] for result in results[1::2]]


def result(outcome: str, **more: Any) -> Any:
    base: dict[str, Any] = {"outcome": outcome, "reason": None, "failure": None, "signal": None, "exit_code": 0}
    return {**base, "seconds": 1.0, "cpu_seconds": 0.5, "reproduce": "again", "soak": None, **more}


def test_what_repetitions_say_together() -> None:
    same: Any = soak.merged([result("pass")] * 3, "s", 4)
    assert (same["outcome"], same["seconds"], same["soak"]["asked"]) == ("pass", 3.0, 4)
    error: Any = soak.merged([result("pass"), result("harness-error", reason="odd")], "s", 2)
    assert (error["outcome"], error["reason"]) == ("harness-error", "odd")
    many: Any = soak.merged([result("fail", failure={"message": "no"})] * 99, "s", 99)
    assert (many["outcome"], many["soak"]["outcomes"], len(many["soak"]["unexpected"])) == ("fail", {"fail": 99}, 20)
    json.dumps(many)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(["--soak=0"], "'0' is no number of repetitions; write e.g. --soak 50"), (["--soak-seed=1"], "add --soak N")],
)
def test_a_wrong_soak_is_refused(suite: Callable[..., Suite], arguments: list[str], text: str) -> None:
    done = suite().run("cases", *arguments)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert text in done.stderr.str()
