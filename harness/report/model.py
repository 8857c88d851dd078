"""From single points to rules with a verdict.

The only place that decides what a mix of outcomes means for a rule; the page, the table and the gate all read it here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypedDict, cast

from harness.results import BAD, LISTED, Expected, Outcome, Point, Result, Rule, label

VERDICTS = ("broken", "error", "stale", "known", "upstream", "conforms", "unsupported")
"""In the order in which a reader has to care."""


class Meta(TypedDict):
    """What a run knows besides its results."""

    suite: dict[str, Any]
    subject: dict[str, str]
    device: dict[str, str]


class JudgedRule(Rule):
    verdict: str
    points: list[Point]


class Report(Meta):
    schema: int
    totals: dict[str, int]
    rules: list[JudgedRule]


def verdict(outcomes: Iterable[str]) -> str:
    """The verdict on a rule whose points ended like this.

    The worst certain knowledge wins: a point that is broken stays broken even if the harness failed at another one.
    Raises ValueError for no outcome at all or an unknown one.
    """
    seen = set(outcomes)
    if not seen or not seen <= set(Outcome):
        raise ValueError(
            f"no verdict for outcomes {sorted(map(str, seen))}: expected at least one of {', '.join(Outcome)}"
        )
    if seen & BAD:
        return "broken"
    if Outcome.HARNESS_ERROR in seen:
        return "error"
    if Outcome.XPASS in seen:
        return "stale"
    if Outcome.XFAIL in seen:
        return "known"
    if Outcome.UPSTREAM in seen:
        return "upstream"
    return "conforms" if Outcome.PASS in seen else "unsupported"


def totals(rules: Iterable[JudgedRule]) -> dict[str, int]:
    """Number of points per outcome, zeros included."""
    counts = {str(outcome): 0 for outcome in Outcome}
    for rule in rules:
        for point in rule["points"]:
            counts[point["outcome"]] += 1
    return counts


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key that puts threads=10 after threads=9."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def build(results: Iterable[Result], meta: Meta) -> Report:
    """Assemble a report (see report.schema.json) from single results, in any order: workers finish when they finish.

    Raises KeyError when a field that grouping needs is absent. Everything else is left to `check`, which names the
    place.
    """
    heads: dict[str, Rule] = {}
    points: dict[str, list[Point]] = {}
    for result in results:
        head = cast(Rule, {field: result["rule"][field] for field in Rule.__annotations__})
        heads.setdefault(head["id"], head)
        point = cast(Point, {key: value for key, value in result.items() if key != "rule"})
        points.setdefault(head["id"], []).append(point)
    rules: list[JudgedRule] = []
    for name in sorted(heads, key=str):
        found = sorted(points[name], key=lambda point: natural(str(point["id"])))
        rules.append({**heads[name], "verdict": verdict(point["outcome"] for point in found), "points": found})
    return {
        "schema": 1,
        "suite": meta["suite"],
        "subject": meta["subject"],
        "device": meta["device"],
        "totals": totals(rules),
        "rules": rules,
    }


def unjudged(report: Report) -> int:
    """How many points the run set out to judge and did not."""
    return max(0, report["suite"]["selected"] - sum(report["totals"].values()))


def expectations(rule: JudgedRule) -> list[tuple[Expected, list[Point]]]:
    """The expectations that decided points of the rule, each with its points; stale ones first and apart."""
    found: dict[tuple[str, str, int], tuple[Expected, list[Point]]] = {}
    for point in rule["points"]:
        expected = point["expected"]
        if expected is not None and point["outcome"] in LISTED:
            key = (point["outcome"], expected["file"], expected["line"])
            found.setdefault(key, (expected, []))[1].append(point)
    return [found[key] for key in sorted(found, key=lambda key: key[0], reverse=True)]


def outcome_label(point: Point) -> str:
    """The outcome as people read it, with what it follows from: xfail as "known: crash(SIGSEGV)"."""
    expected, control = point["expected"], point["control"]
    if expected is not None and point["outcome"] == Outcome.XFAIL:
        return f"known: {label(point, expected['outcome'])}"
    if expected is not None and point["outcome"] == Outcome.XPASS:
        return f"{'fails upstream' if control else 'passes'}, expected {expected['outcome']}"
    if control is not None and point["outcome"] == Outcome.UPSTREAM:
        return f"upstream: {label(control)}"
    return label(point)
