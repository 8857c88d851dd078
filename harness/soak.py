"""Many repetitions of one point, each with random delays of its own: what a seed is called, and what all of them say. A
point that does not end alike every time is a flake, which no expectation excuses."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .explain import label

SHOWN = 20
"""Repetitions that a report lists; a thousand failures are told by their number."""
QUIET = frozenset({"pass", "xfail", "upstream", "unsupported"})


def new_seed() -> str:
    return os.urandom(3).hex()


def repetition(seed: str, number: int) -> str:
    """The seed of one repetition, counted from 1."""
    return f"{seed}.{number}"


def merged(results: Sequence[dict[str, Any]], seed: str, asked: int) -> dict[str, Any]:
    """One result of all repetitions of a point, in the order of their numbers. `asked` is how many there should be; an
    interrupted run has less."""
    ends = Counter(label(result) for result in results)
    outcomes = {result["outcome"] for result in results}
    loud = [result for result in results if result["outcome"] not in QUIET]
    broken = [result for result in results if result["outcome"] == "harness-error"]
    shown = dict((broken or loud or results)[0])
    for name in ("seconds", "cpu_seconds"):
        shown[name] = round(sum(result[name] for result in results), 3)
    shown["soak"] = {
        "seed": seed,
        "asked": asked,
        "outcomes": dict(ends),
        "unexpected": [
            {"outcome": label(result), "message": _message(result), "reproduce": result["reproduce"]}
            for result in loud[:SHOWN]
        ],
    }
    if len(outcomes) > 1 and not broken:
        shown["outcome"] = "flake"
        counted = ", ".join(f"{times} {end}" for end, times in ends.most_common())
        failure = shown["failure"] or {"expected": None, "found": None, "import_stack": [], "traceback": []}
        message = f"{len(results)} repetitions ended in {len(ends)} ways: {counted}"
        shown["failure"] = {**failure, "message": f"{message}; one of them: {_message(shown)}"}
    return shown


def _message(result: dict[str, Any]) -> str:
    if result["outcome"] == "xpass":
        return f"it passes, against {result['expected']['file']}:{result['expected']['line']}"
    return result["reason"] or (result["failure"]["message"] if result["failure"] else "") or label(result)
