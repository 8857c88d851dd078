"""The verdict on one point: from how the interpreter ended and what it had recorded to one outcome. Every way to end
that is not provably a pass has a name of its own."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .process import Ended
from .records import Records

INSIDE = str(Path(__file__).parent / "inside")


@dataclass
class Verdict:
    """`failure` is the report's failure entry; `reason` explains unsupported and harness-error."""

    outcome: str
    failure: dict[str, Any] | None = None
    reason: str | None = None
    signal: str | None = None
    exit_code: int | None = None
    leaked: list[str] = field(default_factory=list)


def judge(ended: Ended, records: Records, contradiction: str | None, timeout: float, size_limit: int) -> Verdict:
    """Decide. The order matters: a broken judge first, then what is certainly wrong, a pass last."""
    verdict = Verdict(
        outcome="pass",
        signal=signal_name(-ended.returncode) if ended.returncode < 0 else None,
        exit_code=ended.returncode if ended.returncode >= 0 else None,
        leaked=ended.leaked,
    )
    end = records.end

    if records.damaged:
        return _error(verdict, records.damaged)
    if records.broken:
        return _error(verdict, records.broken)
    if end is not None and end.get("probe_error"):
        return _error(verdict, f"the case uses the probe wrongly: {end['message']} (at {_last(end['traceback'])})")
    if contradiction:
        return _error(verdict, contradiction)

    if records.failed:
        # Also when somebody swallowed the exception, and whatever came after it.
        verdict.outcome = "fail"
        verdict.failure = _failed_check(records.failed, _afterwards(ended, verdict, timeout))
        return verdict
    if ended.oversize:
        verdict.outcome = "fail"
        verdict.failure = failure(
            f"the case wrote more than {size_limit >> 20} MiB to stdout or stderr, and was stopped"
        )
        return verdict
    if ended.timed_out:
        verdict.outcome = "timeout"
        where = "while the interpreter shut down" if end is not None else "within the case"
        verdict.failure = failure(f"still running after {timeout:g} s, {where}")
        return verdict
    if verdict.signal:
        verdict.outcome = "crash"
        where = "the interpreter shut down after the case" if end is not None else "the case ran"
        verdict.failure = failure(f"killed by {verdict.signal} while {where}")
        return verdict
    if end is None:
        verdict.outcome = "exit"
        verdict.failure = failure(
            f"the interpreter ended with exit code {ended.returncode} before the case's last line",
            expected="the case runs to its end",
        )
        return verdict
    if end["how"] == "exit":
        verdict.outcome = "exit"
        verdict.failure = failure(
            f"SystemExit({end['message']}) ended the case before its last line", traceback=end["traceback"]
        )
        return verdict
    if end["how"] == "raised":
        verdict.outcome = "fail"
        verdict.failure = failure(
            f"unexpected {end['type']}: {end['message']}", expected="no exception", traceback=end["traceback"]
        )
        return verdict
    if ended.returncode != 0:
        verdict.outcome = "exit"
        verdict.failure = failure(f"exit code {ended.returncode} when the interpreter shut down after the case")
        return verdict
    if ended.leaked:
        verdict.outcome = "leak"
        verdict.failure = failure(f"{len(ended.leaked)} processes outlived the case", found="\n".join(ended.leaked))
        return verdict
    if records.unsupported is not None:
        verdict.outcome, verdict.reason = "unsupported", records.unsupported
        return verdict
    if not records.checks:
        return _error(verdict, "the case ended without a single check; a rule that checks nothing cannot be met")
    return verdict


def failure(
    message: str, *, expected: str | None = None, found: str | None = None, traceback: list[str] | None = None
) -> dict[str, Any]:
    return {
        "message": message,
        "expected": expected,
        "found": found,
        "import_stack": [],
        "traceback": traceback or [],
    }


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _error(verdict: Verdict, reason: str) -> Verdict:
    verdict.outcome, verdict.reason = "harness-error", reason
    return verdict


def _failed_check(failed: list[dict[str, Any]], afterwards: str) -> dict[str, Any]:
    entry = failed[0]
    found = [entry["found"]] if entry.get("found") is not None else []
    found += [f"{key} = {value}" for key, value in entry.get("facts", {}).items()]
    found += [f"and {other['message']}" for other in failed[1:]]
    return {
        "message": entry["message"] + afterwards,
        "expected": entry.get("expected"),
        "found": "\n".join(found) or None,
        "import_stack": list(entry.get("import_stack", [])),
        "traceback": list(entry.get("traceback", [])),
    }


def _afterwards(ended: Ended, verdict: Verdict, timeout: float) -> str:
    if ended.timed_out:
        return f" (afterwards it still ran when its {timeout:g} s were over)"
    if verdict.signal:
        return f" (afterwards {verdict.signal} ended the interpreter)"
    return ""


def _last(traceback: list[str]) -> str:
    cases = [line for line in traceback if not line.startswith(INSIDE)]
    return (cases or traceback or ["?"])[-1]
