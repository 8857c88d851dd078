"""Many repetitions of one point, each with random delays of its own: what a seed is called, and what all of them say. A
point that does not end alike every time is a flake, which no expectation excuses."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from .results import URGENT, Outcome, Result, failure, label

SHOWN = 20
"""Repetitions that a report lists; a thousand failures are told by their number."""


def new_seed() -> str:
    return os.urandom(3).hex()


def repetition(seed: str, number: int) -> str:
    """The seed of one repetition, counted from 1."""
    return f"{seed}.{number}"


def merged(results: Sequence[Result], seed: str, asked: int) -> Result:
    """One result of all repetitions of a point, in the order of their numbers. `asked` is how many there should be; an
    interrupted run has less."""
    ends = Counter(label(result) for result in results)
    outcomes = {result["outcome"] for result in results}
    loud = [result for result in results if result["outcome"] in URGENT | {Outcome.XPASS}]
    broken = [result for result in results if result["outcome"] == Outcome.HARNESS_ERROR]
    shown = (broken or loud or results)[0].copy()
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
        shown["outcome"] = Outcome.FLAKE
        counted = ", ".join(f"{times} {end}" for end, times in ends.most_common())
        message = f"{len(results)} repetitions ended in {len(ends)} ways: {counted}"
        message += f"; one of them: {_message(shown)}"
        shown["failure"] = {**(shown["failure"] or failure("")), "message": message}
    return shown


def _message(result: Result) -> str:
    if result["outcome"] == Outcome.XPASS and result["expected"] is not None:
        return f"it passes, against {result['expected']['file']}:{result['expected']['line']}"
    return result["reason"] or (result["failure"]["message"] if result["failure"] else "") or label(result)
