"""What is known of one point: how it ended, and its entry in the report. report.schema.json says the same to programs,
with the meaning of each field."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypedDict


class Outcome(str, Enum):
    """How a point ended."""

    PASS = "pass"
    FAIL = "fail"
    CRASH = "crash"
    EXIT = "exit"
    TIMEOUT = "timeout"
    LEAK = "leak"
    FLAKE = "flake"
    HARNESS_ERROR = "harness-error"
    UNSUPPORTED = "unsupported"
    UPSTREAM = "upstream"
    XFAIL = "xfail"
    XPASS = "xpass"

    def __str__(self) -> str:
        return self.value


EXCUSABLE = (Outcome.FAIL, Outcome.CRASH, Outcome.EXIT, Outcome.TIMEOUT, Outcome.LEAK)
"""How an expectation can say that a point ends."""
BAD = frozenset({*EXCUSABLE, Outcome.FLAKE})
"""The subject does not meet the rule."""
URGENT = BAD | {Outcome.HARNESS_ERROR}
"""Nobody expected it."""
EXPLAINED = frozenset({Outcome.XFAIL, Outcome.UPSTREAM})
"""The rule is not met, and why is known."""
LISTED = frozenset({Outcome.XFAIL, Outcome.XPASS})
"""An expectation has decided it."""
HOLDS = frozenset({Outcome.PASS, Outcome.XPASS})
"""The rule is met; an expectation may say otherwise."""
NEEDS_NO_EXCUSE = frozenset({Outcome.PASS, Outcome.UPSTREAM})
"""An expectation of it is out of date."""
NOT_JUDGED = frozenset({Outcome.UNSUPPORTED, Outcome.HARNESS_ERROR})
"""Nothing is known about the subject, for the reason given."""


class Failure(TypedDict):
    message: str
    expected: str | None
    found: str | None
    import_stack: list[str]
    traceback: list[str]


class Expected(TypedDict):
    """An entry of the expectations file."""

    outcome: Outcome
    reason: str
    file: str
    line: int
    link: str | None


class Control(TypedDict):
    """What plain PyTorch did; every point has these fields as well."""

    outcome: Outcome
    failure: Failure | None
    reason: str | None
    signal: str | None
    exit_code: int | None
    seconds: float
    stdout: str
    stderr: str
    stack_dump: str | None
    reproduce: str


class Repetition(TypedDict):
    outcome: str
    message: str
    reproduce: str


class Soak(TypedDict):
    seed: str
    asked: int
    outcomes: dict[str, int]
    unexpected: list[Repetition]


class Point(Control):
    """One run of a case in a fresh interpreter."""

    id: str
    params: dict[str, Any]
    expected: Expected | None
    cpu_seconds: float
    checks: int
    leaked: list[str]
    notes: dict[str, Any]
    control: Control | None
    soak: Soak | None


class Rule(TypedDict):
    id: str
    title: str
    text: str
    level: str
    area: str
    file: str


class Result(Point):
    """A point before it has its place in a report."""

    rule: Rule


def failure(
    message: str,
    *,
    expected: str | None = None,
    found: str | None = None,
    import_stack: list[str] | None = None,
    traceback: list[str] | None = None,
) -> Failure:
    return {
        "message": message,
        "expected": expected,
        "found": found,
        "import_stack": import_stack or [],
        "traceback": traceback or [],
    }


def label(result: Control, outcome: str | None = None) -> str:
    """The outcome (or another one, with the result's detail) as people read it: crash(SIGSEGV), exit(3)."""
    outcome = str(outcome or result["outcome"])
    if outcome == Outcome.CRASH and result["signal"]:
        return f"{outcome}({result['signal']})"
    if outcome == Outcome.EXIT and result["exit_code"] is not None:
        return f"{outcome}({result['exit_code']})"
    return outcome
