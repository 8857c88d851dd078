"""What a mix of outcomes means for a rule, and that grouping loses and invents nothing."""

from __future__ import annotations

import itertools
import random

import pytest

from harness.report.model import build, natural, outcome_label, totals, verdict
from harness.results import BAD, Outcome

from . import sample


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["pass"], "conforms"),
        (["pass", "pass"], "conforms"),
        (["pass", "unsupported"], "conforms"),
        (["unsupported"], "unsupported"),
        (["xfail"], "known"),
        (["xfail", "pass"], "known"),
        (["xfail", "unsupported"], "known"),
        (["xpass"], "stale"),
        (["xpass", "xfail"], "stale"),
        (["xpass", "pass"], "stale"),
        (["harness-error"], "error"),
        (["harness-error", "pass"], "error"),
        (["harness-error", "xpass"], "error"),
        (["fail"], "broken"),
        (["crash"], "broken"),
        (["exit"], "broken"),
        (["timeout"], "broken"),
        (["leak"], "broken"),
        (["leak", "pass", "pass"], "broken"),
        (["fail", "xfail"], "broken"),
        (["fail", "harness-error"], "broken"),
        (["crash", "xpass"], "broken"),
        (["flake", "pass"], "broken"),
        (["upstream", "pass"], "upstream"),
        (["upstream", "xfail"], "known"),
    ],
)
def test_verdict_of_typical_mixes(outcomes: list[str], expected: str) -> None:
    assert verdict(outcomes) == expected


def test_every_mix_of_outcomes_has_the_verdict_of_its_worst_member() -> None:
    rank = dict.fromkeys(BAD, "broken") | {
        "harness-error": "error", "xpass": "stale", "xfail": "known", "upstream": "upstream", "pass": "conforms",
        "unsupported": "unsupported",
    }  # fmt: skip
    order = ["broken", "error", "stale", "known", "upstream", "conforms", "unsupported"]
    for size in range(1, len(Outcome) + 1):
        for mix in itertools.combinations(Outcome, size):
            worst = min((rank[outcome] for outcome in mix), key=order.index)
            assert verdict(mix) == verdict(reversed(mix)) == worst, mix


@pytest.mark.parametrize("outcomes", [[], ["passed"], ["pass", "skip"]])
def test_verdict_refuses_nothing_and_unknown_outcomes(outcomes: list[str]) -> None:
    with pytest.raises(ValueError, match="no verdict for outcomes"):
        verdict(outcomes)


def test_order_of_results_does_not_matter() -> None:
    results = sample.results()
    report = build(results, sample.meta())
    for seed in range(5):
        shuffled = list(results)
        random.Random(seed).shuffle(shuffled)
        assert build(shuffled, sample.meta()) == report


def test_every_point_arrives_unchanged_in_its_rule() -> None:
    results = sample.results()
    report = build(results, sample.meta())
    arrived = {(rule["id"], point["id"]): point for rule in report["rules"] for point in rule["points"]}
    assert len(arrived) == len(results) == sum(report["totals"].values())
    for result in results:
        point = arrived[result["rule"]["id"], result["id"]]
        assert {**point, "rule": result["rule"]} == result


def test_sample_has_every_outcome_and_verdict() -> None:
    report = build(sample.results(), sample.meta())
    assert all(report["totals"].values()), report["totals"]
    assert {rule["verdict"] for rule in report["rules"]} == {
        "conforms", "broken", "known", "stale", "unsupported", "upstream", "error",
    }  # fmt: skip


def test_totals_count_zeros() -> None:
    assert totals([]) == dict.fromkeys(Outcome, 0)


def test_a_rules_tenth_point_comes_after_its_ninth() -> None:
    names = ["a/b/c[n=10]", "a/b/c[n=9]", "a/b/b", "a/b/c[n=1]"]
    assert sorted(names, key=natural) == ["a/b/b", "a/b/c[n=1]", "a/b/c[n=9]", "a/b/c[n=10]"]


@pytest.mark.parametrize(
    ("outcome", "more", "label"),
    [
        ("pass", {}, "pass"),
        ("crash", {}, "crash(SIGSEGV)"),
        ("exit", {}, "exit(3)"),
        ("timeout", {}, "timeout"),
        ("xfail", {}, "known: fail"),
        ("xfail", {"expected": sample.expected("crash"), "signal": "SIGABRT"}, "known: crash(SIGABRT)"),
        ("xpass", {}, "passes, expected fail"),
        ("xpass", {"control": sample.control()}, "fails upstream, expected fail"),
        ("upstream", {}, "upstream: fail"),
        ("upstream", {"control": sample.control("crash", signal="SIGSEGV")}, "upstream: crash(SIGSEGV)"),
        ("flake", {}, "flake"),
    ],
)
def test_outcome_as_people_read_it(outcome: str, more: dict, label: str) -> None:
    assert outcome_label(sample.point(sample.rule("a/b/1"), outcome, **more)) == label
