"""The verdict on one point: from how the interpreter ended and what it had recorded to one outcome. Every way to end
that is not provably a pass has a name of its own."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .process import Ended
from .records import Records
from .results import Failure, Outcome, failure

INSIDE = str(Path(__file__).parent / "inside")


@dataclass
class Verdict:
    """`failure` is the report's failure entry; `reason` explains unsupported and harness-error."""

    outcome: Outcome
    failure: Failure | None = None
    reason: str | None = None
    signal: str | None = None
    exit_code: int | None = None
    leaked: list[str] = field(default_factory=list)


def judge(
    ended: Ended,
    records: Records,
    contradiction: str | None,
    timeout: float,
    size_limit: int,
    *,
    loads: str | None = None,
) -> Verdict:
    """Decide. The order matters: a broken judge first, then what is certainly wrong, a pass last. `loads`: a package
    without which nothing was judged."""
    verdict = Verdict(
        outcome=Outcome.PASS,
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

    def ended_as(outcome: Outcome, message: str, **more: Any) -> Verdict:
        verdict.outcome, verdict.failure = outcome, failure(message, **more)
        return verdict

    if records.failed:
        # Also when somebody swallowed the exception, and whatever came after it.
        return ended_as(Outcome.FAIL, **_failed_check(records.failed, _afterwards(ended, verdict, timeout)))
    if ended.oversize:
        size = f"{size_limit >> 20} MiB"
        return ended_as(Outcome.FAIL, f"the case wrote more than {size} to stdout or stderr, and was stopped")
    if ended.timed_out:
        where = "while the interpreter shut down" if end is not None else "within the case"
        return ended_as(Outcome.TIMEOUT, f"still running after {timeout:g} s, {where}")
    if verdict.signal:
        where = "the interpreter shut down after the case" if end is not None else "the case ran"
        return ended_as(Outcome.CRASH, f"killed by {verdict.signal} while {where}")
    if end is None:
        message = f"the interpreter ended with exit code {ended.returncode} before the case's last line"
        return ended_as(Outcome.EXIT, message, expected="the case runs to its end")
    if end["how"] == "exit":
        message = f"SystemExit({end['message']}) ended the case before its last line"
        return ended_as(Outcome.EXIT, message, traceback=end["traceback"])
    if end["how"] == "raised":
        message = f"unexpected {end['type']}: {end['message']}"
        return ended_as(Outcome.FAIL, message, expected="no exception", traceback=end["traceback"])
    if ended.returncode != 0:
        message = f"exit code {ended.returncode} when the interpreter shut down after the case"
        return ended_as(Outcome.EXIT, message)
    if ended.leaked:
        message = f"{len(ended.leaked)} processes outlived the case"
        return ended_as(Outcome.LEAK, message, found="\n".join(ended.leaked))
    if records.unsupported is not None:
        verdict.outcome, verdict.reason = Outcome.UNSUPPORTED, records.unsupported
        return verdict
    if loads is not None and loads not in records.versions:
        return _error(verdict, f"the case imports {loads}, and at its end there is none: nothing has been judged")
    if not records.checks:
        return _error(verdict, "the case ended without a single check; a rule that checks nothing cannot be met")
    return verdict


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _error(verdict: Verdict, reason: str) -> Verdict:
    verdict.outcome, verdict.reason = Outcome.HARNESS_ERROR, reason
    return verdict


def _failed_check(failed: list[dict[str, Any]], afterwards: str) -> Failure:
    entry = failed[0]
    found = [entry["found"]] if entry.get("found") is not None else []
    found += [f"{key} = {value}" for key, value in entry.get("facts", {}).items()]
    found += [f"and {other['message']}" for other in failed[1:]]
    return failure(
        entry["message"] + afterwards,
        expected=entry.get("expected"),
        found="\n".join(found) or None,
        import_stack=list(entry.get("import_stack", [])),
        traceback=list(entry.get("traceback", [])),
    )


def _afterwards(ended: Ended, verdict: Verdict, timeout: float) -> str:
    if ended.timed_out:
        return f" (afterwards it still ran when its {timeout:g} s were over)"
    if verdict.signal:
        return f" (afterwards {verdict.signal} ended the interpreter)"
    return ""


def _last(traceback: list[str]) -> str:
    cases = [line for line in traceback if not line.startswith(INSIDE)]
    return (cases or traceback or ["?"])[-1]
