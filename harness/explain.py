"""A result in words, for the person who has to act on it: the rule, what was expected and found, who did it, and how to
repeat it."""

from __future__ import annotations

from .header import spell
from .results import LISTED, NOT_JUDGED, Control, Outcome, Result, label

TAIL_LINES = 15
DUMP_LINES = 40


def explain(result: Result) -> str:
    """Several lines, compact enough for a CI log; the first alone says what happened."""
    rule, failure, expected = result["rule"], result["failure"], result["expected"]
    if expected is not None and result["outcome"] == Outcome.XPASS:
        now = "plain PyTorch fails likewise" if result["control"] else "it passes"
        what = f"{now}; delete {expected['file']}:{expected['line']}, which expects {expected['outcome']}"
    else:
        what = result["reason"] or (failure["message"] if failure else "")
    lines = [f"{label(result)}: {what}" if what else label(result)]
    lines += _field("rule", f"{rule['id']} ({rule['level']}): {rule['title']}")
    lines += _field("point", " ".join(f"{name}={spell(value)}" for name, value in result["params"].items()))
    if expected is not None and result["outcome"] not in LISTED:
        lines += _field("listed", f"{expected['file']}:{expected['line']} expects another end: {expected['outcome']}")
    if result["control"] is not None:
        lines += _field("control", control(result["control"]))
    if failure is not None:
        lines += _field("expected", failure["expected"])
        lines += _field("found", failure["found"])
        lines += _block("first imported by, outermost first:", failure["import_stack"])
        lines += _block("at, outermost first:", failure["traceback"])
    if result["stack_dump"]:
        lines += _block("stacks of all threads:", result["stack_dump"].splitlines()[:DUMP_LINES])
    for stream in ("stderr", "stdout"):
        text = result[stream].rstrip().splitlines()
        shown = text[-TAIL_LINES:]
        lines += _block(
            f"{stream}{f', last {len(shown)} of {len(text)} lines' if len(text) > len(shown) else ''}:", shown
        )
    lines += ["reproduce:", f"    {result['reproduce']}"]
    if result["control"] is not None:
        lines.append(f"    {result['control']['reproduce']}")
    return "\n".join(lines)


def control(result: Control) -> str:
    """What plain PyTorch did at the same point, and what follows from it."""
    what = result["reason"] or (result["failure"]["message"] if result["failure"] else "")
    ended = f"{label(result)}: {what}" if what else label(result)
    if result["outcome"] == Outcome.PASS:
        return "plain PyTorch passes, so torch_npu is at fault"
    if result["outcome"] in NOT_JUDGED:
        return f"there is none, {ended}"
    return f"plain PyTorch ends with {ended}"


def _field(name: str, text: str | None) -> list[str]:
    if not text:
        return []
    first, *rest = text.splitlines()
    return [f"{name + ':':<11}{first}", *(f"           {line}" for line in rest)]


def _block(title: str, lines: list[str]) -> list[str]:
    return [title, *(f"    {line}" for line in lines)] if lines else []
