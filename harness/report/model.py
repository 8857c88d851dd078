"""From single points to rules with a verdict.

The only place that decides what a mix of outcomes means for a rule; the page, the table and the gate all read it here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

OUTCOMES = (
    "pass", "fail", "crash", "exit", "timeout", "leak", "flake", "harness-error", "unsupported", "upstream", "xfail",
    "xpass",
)  # fmt: skip
BAD = frozenset({"fail", "crash", "exit", "timeout", "leak", "flake"})
"""Outcomes that say the subject does not meet the rule."""

VERDICTS = ("broken", "error", "stale", "known", "upstream", "conforms", "unsupported")
"""In the order in which a reader has to care."""

RULE_FIELDS = ("id", "title", "text", "level", "area", "file")


def verdict(outcomes: Iterable[str]) -> str:
    """The verdict on a rule whose points ended like this.

    The worst certain knowledge wins: a point that is broken stays broken even if the harness failed at another one.
    Raises ValueError for no outcome at all or an unknown one.
    """
    seen = set(outcomes)
    if not seen or not seen <= set(OUTCOMES):
        raise ValueError(f"no verdict for outcomes {sorted(seen)}: expected at least one of {', '.join(OUTCOMES)}")
    if seen & BAD:
        return "broken"
    if "harness-error" in seen:
        return "error"
    if "xpass" in seen:
        return "stale"
    if "xfail" in seen:
        return "known"
    if "upstream" in seen:
        return "upstream"
    return "conforms" if "pass" in seen else "unsupported"


def totals(rules: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Number of points per outcome, zeros included."""
    counts: dict[str, int] = {outcome: 0 for outcome in OUTCOMES}  # noqa: C420 - pyright keeps literal keys
    for rule in rules:
        for point in rule["points"]:
            counts[point["outcome"]] += 1
    return counts


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key that puts threads=10 after threads=9."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def build(results: Iterable[dict[str, Any]], meta: dict[str, Any]) -> dict[str, Any]:
    """Assemble a report (see report.schema.json) from single results.

    results: one dict per point: the fields of a point in the report, plus "rule", a dict with the fields of its rule
        (id, title, text, level, area, file). Any order: workers finish when they finish.
    meta: "suite", "subject" and "device" as in the report.

    Raises KeyError when a field that grouping needs is absent. Everything else is left to `check`, which names the
    place.
    """
    rules: dict[str, dict[str, Any]] = {}
    for result in results:
        head = {field: result["rule"][field] for field in RULE_FIELDS}
        rule = rules.setdefault(head["id"], {**head, "points": []})
        rule["points"].append({key: value for key, value in result.items() if key != "rule"})
    ordered = []
    for rule in sorted(rules.values(), key=lambda rule: str(rule["id"])):
        points = sorted(rule["points"], key=lambda point: natural(str(point["id"])))
        head = {field: rule[field] for field in RULE_FIELDS}
        ordered.append({**head, "verdict": verdict(point["outcome"] for point in points), "points": points})
    return {
        "schema": 1,
        "suite": meta["suite"],
        "subject": meta["subject"],
        "device": meta["device"],
        "totals": totals(ordered),
        "rules": ordered,
    }


def unjudged(report: dict[str, Any]) -> int:
    """How many points the run set out to judge and did not come to."""
    return max(0, report["suite"]["selected"] - sum(report["totals"].values()))


def expectations(rule: dict[str, Any]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The expectations that decided points of the rule, each with its points; stale ones first and apart."""
    found: dict[tuple[Any, ...], tuple[dict[str, Any], list[dict[str, Any]]]] = {}
    for point in rule["points"]:
        expected = point["expected"]
        if point["outcome"] in {"xfail", "xpass"}:
            key = (point["outcome"], expected["file"], expected["line"])
            found.setdefault(key, (expected, []))[1].append(point)
    return [found[key] for key in sorted(found, key=lambda key: key[0], reverse=True)]


def outcome_label(point: dict[str, Any]) -> str:
    """The outcome as people read it: crash(SIGSEGV), exit(3), xfail as "known: crash(SIGSEGV)"."""
    outcome = point["outcome"]
    if outcome == "xfail":
        return "known: " + _with_detail(point["expected"]["outcome"], point)
    if outcome == "xpass":
        now = "fails upstream" if point["control"] else "passes"
        return f"{now}, expected " + point["expected"]["outcome"]
    if outcome == "upstream":
        return "upstream: " + _with_detail(point["control"]["outcome"], point["control"])
    return _with_detail(outcome, point)


def _with_detail(outcome: str, point: dict[str, Any]) -> str:
    if outcome == "crash" and point["signal"]:
        return f"crash({point['signal']})"
    if outcome == "exit" and point["exit_code"] is not None:
        return f"exit({point['exit_code']})"
    return outcome
