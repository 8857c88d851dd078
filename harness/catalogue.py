"""The suite as a list of rules: what there is, what a prefix selects, and how it reads as text."""

from __future__ import annotations

import difflib
import json
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import header
from .header import Case, HeaderError, Point


@dataclass(frozen=True)
class Suite:
    """All cases below a directory, sorted by rule, and the files whose header cannot be used."""

    directory: Path
    cases: tuple[Case, ...]
    errors: tuple[HeaderError, ...]

    def unknown(self, prefixes: Sequence[str]) -> list[str]:
        """One line for each prefix that selects nothing, with the nearest ones that would."""
        known = sorted({prefix for case in self.cases for prefix in _prefixes(case.rule)})
        ids = {point.id for case in self.cases for point in case.points()}
        lines = []
        for prefix in prefixes:
            wanted = prefix.strip("/")
            if wanted not in known and wanted not in ids:
                candidates = sorted(ids) if "[" in wanted else known
                near = difflib.get_close_matches(wanted, candidates, n=4, cutoff=0.5)
                hint = (
                    f"near: {', '.join(near)}"
                    if near
                    else f"the areas are {', '.join(sorted({case.area for case in self.cases}))}"
                )
                lines.append(f"no rule starts with {prefix!r}; {hint}")
        return lines


def read(directory: Path) -> Suite:
    """Read the headers of all cases below `directory`, which need not exist."""
    cases, errors = header.read_all(directory)
    return Suite(directory, tuple(cases), tuple(errors))


def selected(point: Point, prefixes: Sequence[str]) -> bool:
    """Whether a prefix selects the point: whole segments of its rule, or its full id. No prefix at all selects all."""
    wanted = [prefix.strip("/") for prefix in prefixes]
    return not wanted or point.id in wanted or any(prefix in wanted for prefix in _prefixes(point.case.rule))


def mentions(case: Case, text: str) -> bool:
    """Whether the rule's id, sentence or file name has the text in it, in capitals or not."""
    return any(text.lower() in where.lower() for where in (case.rule, case.title, case.path.name))


def listing(points: Iterable[Point]) -> str:
    """The rules of `points` as text, two or more lines each: id, level, number of points, releases and file; then the
    sentence. As wide as the terminal, and 100 columns at most."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    lines = []
    grouped = _by_case(points)
    for case, points_of_it in grouped:
        facts = [case.rule, case.level, _count(points_of_it, "point")]
        facts += [f"torch_npu {case.releases}"] if str(case.releases) else []
        lines.append("  ".join([*facts, header.relative(case.path, Path.cwd())]))
        lines += textwrap.wrap(case.title, width=width, initial_indent="    ", subsequent_indent="    ")
    total = sum(points_of_it for _, points_of_it in grouped)
    return "\n".join([*lines, f"{_count(len(grouped), 'rule')}, {_count(total, 'point')}"])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def as_json(points: Iterable[Point]) -> str:
    """The same for programs: an array of objects with every field of the header."""
    rules = [
        {
            "rule": case.rule,
            "title": case.title,
            "text": case.text,
            "level": case.level,
            "area": case.area,
            "releases": str(case.releases),
            "needs": list(case.needs),
            "matrix": {name: list(values) for name, values in case.matrix.items()},
            "control": case.control is not None,
            "timeout": case.timeout,
            "points": count,
            "file": header.relative(case.path, Path.cwd()),
        }
        for case, count in _by_case(points)
    ]
    return json.dumps(rules, indent=2, ensure_ascii=False)


def _by_case(points: Iterable[Point]) -> list[tuple[Case, int]]:
    """Each case with the number of its points, in the order in which they come."""
    counts: dict[str, int] = {}
    cases: dict[str, Case] = {}
    for point in points:
        counts[point.case.rule] = counts.get(point.case.rule, 0) + 1
        cases[point.case.rule] = point.case
    return [(cases[rule], count) for rule, count in counts.items()]


def _prefixes(rule: str) -> list[str]:
    parts = rule.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
