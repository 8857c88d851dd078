"""The report as a table in the terminal or a CI log: what holds, what does not, and the command to look into it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import groupby

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.explain import control
from harness.report.model import VERDICTS, JudgedRule, Report, expectations, outcome_label, unjudged
from harness.report.text import count, duration, params, plain
from harness.results import HOLDS, URGENT, Outcome, Point

LOG_WIDTH = 100
POINTS_SHOWN = 4

STYLES = {
    "broken": "bold red",
    "error": "bold reverse",
    "stale": "bold magenta",
    "known": "yellow",
    "upstream": "cyan",
    "conforms": "green",
    "unsupported": "dim",
}


def table(report: Report, *, color: bool | None = None, width: int | None = None) -> str:
    """The report as text that ends in a newline.

    color, width: by default colours (unless NO_COLOR is set) and the real width on a terminal, no escape sequence and
    100 columns elsewhere.
    Only commands to be copied may be longer than a line: they are never broken.
    """
    terminal = sys.stdout.isatty()
    color = terminal and not os.environ.get("NO_COLOR") if color is None else color
    console = Console(
        file=StringIO(),
        width=width or (None if terminal else LOG_WIDTH),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as captured:
        for part in _parts(report):
            console.print(part, soft_wrap=isinstance(part, _Command))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


class _Command(Text):
    """Text that must stay on one line, however long."""


def _parts(report: Report) -> Iterator[RenderableType]:
    subject, device = report["subject"], report["device"]
    yield Text(
        f"Conformance of torch_npu {subject['torch_npu']} ({subject['name']}, release {subject['release']}) "
        f"on {device['name']}",
        style="bold",
    )
    yield Text(f"torch {subject['torch']}, Python {subject['python']}, {plain(device['detail'])}", style="dim")
    yield Text()
    if report["rules"]:
        yield _rules(report["rules"])
        yield Text()
    for name, title in (
        ("broken", "Broken: nobody expected these to fail"),
        ("error", "Not judged: the harness failed"),
        ("stale", "Stale: passes although an expectation says otherwise, remove the entry"),
        ("known", "Known: does not conform, as expected"),
        ("upstream", "Upstream: fails with plain PyTorch as well, torch_npu is not at fault"),
    ):
        rules = [rule for rule in report["rules"] if rule["verdict"] == name]
        if rules:
            yield Text(title, style=STYLES[name])
            for rule in rules:
                yield from _account(rule)
            yield Text()
    yield _totals(report)


def _rules(rules: list[JudgedRule]) -> Table:
    grid = Table(box=None, expand=True, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column("rule", no_wrap=True)
    grid.add_column("what must hold", no_wrap=True, overflow="ellipsis", ratio=1)
    grid.add_column("points", no_wrap=True, justify="right")
    grid.add_column("verdict", no_wrap=True)
    for area, members in groupby(sorted(rules, key=lambda rule: rule["area"]), key=lambda rule: rule["area"]):
        grid.add_row(Text(area, style="bold"))
        for rule in members:
            passed = sum(point["outcome"] in HOLDS for point in rule["points"])
            grid.add_row(
                Text("  " + rule["id"]),
                Text(plain(rule["title"])),
                Text(f"{passed}/{len(rule['points'])}"),
                Text(rule["verdict"], style=STYLES[rule["verdict"]]),
            )
    return grid


def _points(points: list[Point], command: Callable[[Point], str]) -> Iterator[RenderableType]:
    """What was found at the first of these points, each with the command that shows it."""
    for point in points[:POINTS_SHOWN]:
        yield _indented(f"{params(point)}: {outcome_label(point)}")
        for line in _findings(point):
            yield _indented(line, 6)
        yield _Command(f"      $ {plain(command(point))}")
    if len(points) > POINTS_SHOWN:
        yield _indented(f"and {count(len(points) - POINTS_SHOWN, 'more point')}, see the report")


def _account(rule: JudgedRule) -> Iterator[RenderableType]:
    """Why a rule has a verdict other than conforms."""
    yield Padding(Text.assemble((rule["id"], "bold"), "  ", plain(rule["title"])), (0, 0, 0, 2))
    urgent = [point for point in rule["points"] if point["outcome"] in URGENT]
    yield from _points(urgent, lambda point: point["reproduce"])
    if urgent:
        return
    upstream = [point for point in rule["points"] if point["outcome"] == Outcome.UPSTREAM]
    yield from _points(upstream, lambda point: (point["control"] or point)["reproduce"])
    for expected, points in expectations(rule):
        if rule["verdict"] == "stale" and points[0]["outcome"] != Outcome.XPASS:
            continue  # what is known in a stale rule asks for nothing
        names = "; ".join(params(point) for point in points[:POINTS_SHOWN])
        more = f"; and {len(points) - POINTS_SHOWN} more" if len(points) > POINTS_SHOWN else ""
        now = "fails upstream, expected" if points[0]["control"] else "passes now, expected"
        now = now if points[0]["outcome"] == Outcome.XPASS else "expected"
        yield _indented(f"{names}{more}: {now} {expected['outcome']} ({expected['file']}:{expected['line']})")
        yield _indented(" ".join(plain(expected["reason"]).strip().split("\n\n")[0].split()), 6)
        if expected["link"]:
            yield _indented(expected["link"], 6)


def _findings(point: Point) -> Iterator[str]:
    failure = point["failure"]
    if point["reason"]:
        yield plain(point["reason"])
    if failure:
        yield plain(failure["message"])
        if failure["expected"] is not None:
            yield f"expected: {_short(failure['expected'])}"
        if failure["found"] is not None:
            yield f"found:    {_short(failure['found'])}"
        if failure["import_stack"]:
            yield f"imported by: {plain(failure['import_stack'][-1])}"
    if point["control"]:
        yield _short(f"control: {control(point['control'])}")
    if point["soak"]:
        for repetition in point["soak"]["unexpected"][:POINTS_SHOWN]:
            yield _short(f"{repetition['outcome']}: {repetition['reproduce']}")
    if point["outcome"] in {Outcome.CRASH, Outcome.EXIT, Outcome.TIMEOUT} and point["stderr"].strip():
        yield f"last words: {_short(point['stderr'].strip().splitlines()[-1])}"
    if point["leaked"]:
        yield f"left behind: {plain('; '.join(point['leaked']))}"
    if point["expected"] is not None:
        expected = point["expected"]
        yield f"{expected['file']}:{expected['line']} expects {expected['outcome']} here, not {outcome_label(point)}"


def _short(text: str) -> str:
    line = " ".join(plain(text).split())
    return line if len(line) <= 400 else line[:400] + " ..."


def _indented(text: str, by: int = 4) -> Padding:
    return Padding(Text(text, overflow="fold"), (0, 0, 0, by))


def _totals(report: Report) -> Text:
    verdicts = Counter(rule["verdict"] for rule in report["rules"])
    line = Text(count(len(report["rules"]), "rule"), style="bold")
    for name in VERDICTS:
        if verdicts[name]:
            line.append(", ").append(f"{verdicts[name]} {name}", style=STYLES[name])
    points = ", ".join(f"{number} {outcome}" for outcome, number in report["totals"].items() if number)
    line.append(f"\n{count(sum(report['totals'].values()), 'point')}{': ' + points if points else ''}")
    if soaked := next((point["soak"] for rule in report["rules"] for point in rule["points"] if point["soak"]), None):
        line.append(f"\nEach point {soaked['asked']} times with random delays; again with --soak-seed {soaked['seed']}")
    missing = unjudged(report)
    if missing:
        line.append(f"\nThe run was interrupted: {count(missing, 'point')} of {report['suite']['selected']} not judged")
    return line.append(f"\n{duration(report['suite']['seconds'])}, suite {report['suite']['version']}")
