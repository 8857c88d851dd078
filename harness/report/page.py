"""The report as one page that works from a file: nothing is fetched, nothing a case printed is ever run as markup.

Everything enters through autoescaped templates; a content security policy with the hash of our one script is the second
lock.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from importlib.resources import files
from itertools import groupby
from typing import Any
from urllib.parse import quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.explain import control
from harness.report.model import VERDICTS, JudgedRule, Report, expectations, outcome_label, unjudged
from harness.report.text import clip, count, duration, params, plain, value
from harness.results import EXPLAINED, HOLDS, URGENT, Outcome, Point, failure

OPEN_POINTS = 3
"""Unexpected failures of one rule shown unfolded; more of them mostly repeat each other."""

# Characters of a text shown from its beginning and its end. Where a subject fails everywhere, the page must stay one
# that a phone can open.
UNFOLDED = (4_000, 12_000)
FOLDED = (1_000, 3_000)

MEANING = {
    "broken": "does not conform, and no expectation says so",
    "error": "not judged: the harness failed",
    "stale": "holds now, but an expectation says it does not",
    "known": "does not conform, as an expectation explains",
    "upstream": "does not hold with plain PyTorch either, so torch_npu is not at fault",
    "conforms": "holds at every point that ran",
    "unsupported": "nothing could run here",
}


def render(report: Report, *, junit: str | None = None) -> str:
    """The page for a checked report. junit: relative URL of a JUnit file to link."""
    environment = Environment(
        loader=PackageLoader("harness.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "plain": plain,
        "prose": _prose,
        "code": _code,
        "clip": lambda text, limits: clip(plain(text), *limits),
        "whole": _whole,
        "duration": duration,
        "count": count,
        "value": value,
        "params": params,
        "label": outcome_label,
        "control": control,
        "offset": lambda started: "UTC" if started.endswith(("Z", "+00:00")) else started[-6:],
        "host": lambda url: urlsplit(url).hostname or url,
    }
    style, script = (
        (files("harness.report") / "templates" / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    areas = [
        {"name": area, "rules": [_rule(rule) for rule in members]}
        for area, members in groupby(
            sorted(report["rules"], key=lambda rule: rule["area"]), key=lambda rule: rule["area"]
        )
    ]
    for area in areas:
        area["verdicts"] = _tally(view["rule"] for view in area["rules"])
    return environment.get_template("page.html.j2").render(
        report=report,
        areas=areas,
        verdicts=_tally(report["rules"]),
        lead=_lead(report),
        attention=[
            (rule, _anchor(rule["id"]))
            for verdict in ("broken", "error", "stale")
            for rule in report["rules"]
            if rule["verdict"] == verdict
        ],
        meaning=MEANING,
        outcomes=[(outcome, report["totals"][outcome]) for outcome in Outcome if report["totals"][outcome]],
        points=sum(report["totals"].values()),
        junit=junit,
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _lead(report: Report) -> tuple[str, str]:
    """What asks for action (empty when nothing does), and the rest of the summary."""
    found = Counter(rule["verdict"] for rule in report["rules"])
    urgent = []
    if number := unjudged(report):
        urgent.append(f"The run was interrupted: {number} of {count(report['suite']['selected'], 'point')} not judged.")
    if number := found["broken"]:
        urgent.append(f"{count(number, 'rule')} broken.")
    if number := found["error"]:
        urgent.append(f"{count(number, 'rule')} not judged because the harness failed.")
    if number := found["stale"]:
        urgent.append(f"{count(number, 'rule')} {'holds' if number == 1 else 'hold'} now, against an expectation.")
    rest = [] if urgent else ["Nothing unexpected."]
    verb = "conforms" if found["conforms"] == 1 else "conform"
    rest.append(f"{found['conforms']} of {count(len(report['rules']), 'rule')} {verb}.")
    if number := found["known"]:
        rest.append(f"{number} {'does' if number == 1 else 'do'} not, as known.")
    if number := found["upstream"]:
        rest.append(f"{number} {'fails' if number == 1 else 'fail'} with plain PyTorch as well.")
    if number := found["unsupported"]:
        rest.append(f"{number} could not run here.")
    return " ".join(urgent), " ".join(rest)


def _tally(rules: Any) -> list[tuple[str, int]]:
    seen = Counter(rule["verdict"] for rule in rules)
    return [(verdict, seen[verdict]) for verdict in VERDICTS if seen[verdict]]


def _rule(rule: JudgedRule) -> dict[str, Any]:
    urgent = [point for point in rule["points"] if point["outcome"] in URGENT]
    known = [point for point in rule["points"] if point["outcome"] in EXPLAINED]
    return {
        "rule": rule,
        "anchor": _anchor(rule["id"]),
        "urgent": [_point(rule, point, unfold=number < OPEN_POINTS) for number, point in enumerate(urgent)],
        "known": [_point(rule, point, unfold=False) for point in known],
        "expectations": [
            {
                "expected": expected,
                "points": points,
                "stale": points[0]["outcome"] == Outcome.XPASS,
                "now": "Fails with plain PyTorch as well" if points[0]["control"] else "Passes now",
            }
            for expected, points in expectations(rule)
        ],
        "unsupported": sorted(
            {point["reason"] or "" for point in rule["points"] if point["outcome"] == Outcome.UNSUPPORTED}
        ),
        "passed": sum(point["outcome"] in HOLDS for point in rule["points"]),
        "seconds": sum(point["seconds"] for point in rule["points"]),
        "noted": any(point["notes"] for point in rule["points"]),
    }


def _point(rule: JudgedRule, point: Point, *, unfold: bool) -> dict[str, Any]:
    failed = point["failure"] or failure("")
    texts = [
        ("First imported by", "\n".join(failed["import_stack"])),
        ("Where it failed", "\n".join(line.rstrip("\n") for line in failed["traceback"])),
        ("Processes left behind", "\n".join(point["leaked"])),
        ("Stacks of all threads", point["stack_dump"] or ""),
        ("Standard error", point["stderr"]),
        ("Standard output", point["stdout"]),
    ]
    if point["control"] is not None:
        for title, name in (("stacks", "stack_dump"), ("standard error", "stderr"), ("standard output", "stdout")):
            texts.append((f"Control, plain PyTorch: {title}", point["control"][name] or ""))
    return {
        "point": point,
        "anchor": _anchor(f"{rule['id']}:{point['id']}"),
        "gist": failed["message"] or point["reason"] or "",
        "texts": [(title, text) for title, text in texts if text.strip()],
        "open": unfold,
        "limits": UNFOLDED if unfold else FOLDED,
    }


def _anchor(name: str) -> str:
    """A stable id that needs no escaping in a fragment, so that a link to a rule can be sent around."""
    return quote(name, safe="/:=,.-_[]").replace("%", "~")


def _whole(text: str, limits: tuple[int, int]) -> str:
    """A clipped value in one piece."""
    start, left_out, end = clip(plain(text), *limits)
    return f"{start}\n[{left_out} characters left out here]\n{end}" if left_out else start


def _code(text: str) -> Markup:
    """A paragraph in which `words` between backticks, on one line, are code. As many backticks end it as began it."""
    return Markup("\n").join(_code_in_line(line) for line in plain(text).split("\n"))


def _code_in_line(line: str) -> Markup:
    runs = list(re.finditer("`+", line))
    following: dict[int, int] = {}  # length of a run -> the next run of that length, going backwards
    closing: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        length = len(runs[index][0])
        closing[index] = following.get(length)
        following[length] = index
    out: list[Markup] = []
    done = index = 0
    while index < len(runs):
        closes = closing[index]
        if closes is None:
            index += 1
            continue
        out.append(escape(line[done : runs[index].start()]))
        out.append(Markup("<code>{}</code>").format(line[runs[index].end() : runs[closes].start()].strip()))
        done, index = runs[closes].end(), closes + 1
    return Markup("").join([*out, escape(line[done:])])


def _prose(text: str) -> Markup:
    """Docstring prose: paragraphs, lists with "-" or "*", indented blocks as code."""
    out: list[Markup] = []
    for block in re.split(r"\n[ \t]*\n", plain(text).strip("\n")):
        lines = block.strip("\n").split("\n")
        if not block.strip():
            continue
        if re.match(r"[-*] ", lines[0].lstrip()):
            items = re.split(r"\n\s*[-*] ", "\n" + "\n".join(lines))[1:]
            out.append(
                Markup("<ul>{}</ul>").format(
                    Markup("").join(Markup("<li>{}</li>").format(_code(item)) for item in items)
                )
            )
        elif all(line.startswith(("    ", "\t")) for line in lines):
            out.append(
                Markup('<pre tabindex="0">{}</pre>').format(
                    "\n".join(line[4:] if line[0] == " " else line[1:] for line in lines)
                )
            )
        else:
            out.append(Markup("<p>{}</p>").format(_code(block)))
    return Markup("\n").join(out)
