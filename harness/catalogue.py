"""The suite as a list of rules: what there is, what a prefix selects, and how it reads as text."""

from __future__ import annotations

import difflib
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
                hint = f"near: {', '.join(near)}" if near else f"the areas are {', '.join(_areas(self.cases))}"
                lines.append(f"no rule starts with {prefix!r}; {hint}")
        return lines


def read(directory: Path) -> Suite:
    """Read the headers of all cases below `directory`, which need not exist."""
    cases, errors = header.read_all(header.case_files(directory) if directory.is_dir() else [])
    return Suite(directory, tuple(cases), tuple(errors))


def selected(point: Point, prefixes: Sequence[str]) -> bool:
    """Whether a prefix selects the point: whole segments of its rule, or its full id. No prefix at all selects all."""
    wanted = [prefix.strip("/") for prefix in prefixes]
    return not wanted or point.id in wanted or any(prefix in wanted for prefix in _prefixes(point.case.rule))


def listing(points: Iterable[Point]) -> str:
    """The rules of `points` as text: id, level, number of points, sentence."""
    counts: dict[str, int] = {}
    cases: dict[str, Case] = {}
    for point in points:
        counts[point.case.rule] = counts.get(point.case.rule, 0) + 1
        cases[point.case.rule] = point.case
    width = max((len(rule) for rule in cases), default=0)
    lines = []
    for rule, case in cases.items():
        lead = f"{rule:<{width}}  {case.level:<6}  {counts[rule]:>3}  "
        lines += textwrap.wrap(case.title, width=120, initial_indent=lead, subsequent_indent=" " * len(lead))
    return "\n".join([*lines, f"{len(cases)} rules, {sum(counts.values())} points"])


def _prefixes(rule: str) -> list[str]:
    parts = rule.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _areas(cases: Iterable[Case]) -> list[str]:
    return sorted({case.area for case in cases})
