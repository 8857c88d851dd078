"""Known non-conformances: which points are expected to end badly, and why. An entry that speaks of nothing, or of a
point that passes by now, is an error: a list of excuses must only shrink."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .header import Case, Point, TomlError, not_utf8, toml
from .results import EXCUSABLE, NEEDS_NO_EXCUSE, Expected, Outcome, Result

FIELDS = ("rule", "points", "outcome", "reason", "link")


class ExpectationError(Exception):
    """An expectations file that cannot be used; str() has one line "file:line: cause and remedy" per problem."""


@dataclass(frozen=True)
class Expectation:
    rule: str
    points: Mapping[str, Any]
    outcome: Outcome
    reason: str
    link: str | None
    file: str
    line: int

    def matches(self, point: Point) -> bool:
        """Whether the entry speaks of `point`: same rule, and each parameter that the entry names has its value."""
        return point.case.rule == self.rule and point.has(self.points)

    def entry(self) -> Expected:
        """As it stands in the report."""
        return {
            "outcome": self.outcome,
            "reason": self.reason,
            "file": self.file,
            "line": self.line,
            "link": self.link,
        }


def read(path: Path, cases: Iterable[Case], shown: str) -> list[Expectation]:
    """Read a file and hold it against the suite's cases. No file: no expectations. `shown` is its path in messages.

    Raises ExpectationError with all problems: bad TOML, unknown or missing fields, a rule or point that does not exist,
    a point of which two entries speak.
    """
    if not path.exists() and not path.is_symlink():
        return []
    try:
        if not path.is_file():
            raise ExpectationError(f"{shown}:1: is no regular file; remove it, or write the expectations there")
        source = path.read_text(encoding="utf-8-sig")
        document = toml(source)
    except OSError as error:
        raise ExpectationError(f"{shown}:1: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line, message = not_utf8(error)
        raise ExpectationError(f"{shown}:{line}: {message}") from None
    except TomlError as error:
        raise ExpectationError(f"{shown}:{error.line or 1}: not valid TOML: {error}") from None

    lines = [number for number, line in enumerate(source.splitlines(), 1) if re.match(r"\s*\[\[\s*expect\s*\]\]", line)]
    problems = [f"{shown}:1: unknown table {name!r}; write [[expect]]" for name in document if name != "expect"]
    tables = document.get("expect", [])
    if not isinstance(tables, list) or len(tables) != len(lines):
        problems.append(f"{shown}:1: write each entry as a table of its own that starts with the line [[expect]]")
        raise ExpectationError("\n".join(problems))

    points = {case.rule: case.points() for case in cases}
    entries: list[Expectation] = []
    owner: dict[str, Expectation] = {}
    for line, table in zip(lines, tables, strict=True):
        wrong = _problems(table)
        if wrong:
            problems += [f"{shown}:{line}: {problem}" for problem in wrong]
            continue
        entry = Expectation(
            rule=table["rule"],
            points=table.get("points", {}),
            outcome=Outcome(table["outcome"]),
            reason=table["reason"].strip(),
            link=table.get("link"),
            file=shown,
            line=line,
        )
        entries.append(entry)
        if entry.rule not in points:
            problems.append(f"{shown}:{line}: there is no rule {entry.rule}; delete the entry or correct the id")
            continue
        matched = [point for point in points[entry.rule] if entry.matches(point)]
        if not matched:
            chosen = ", ".join(f"{name} = {value!r}" for name, value in entry.points.items())
            problems.append(f"{shown}:{line}: no point of {entry.rule} has {chosen}; see its matrix")
        for point in matched:
            other = owner.setdefault(point.id, entry)
            if other is not entry:
                problems.append(
                    f"{shown}:{line}: {point.id} is already the subject of line {other.line}; keep one entry"
                )
                break
    if problems:
        raise ExpectationError("\n".join(problems))
    return entries


def _problems(table: Mapping[str, Any]) -> list[str]:
    found = [f"unknown field {name!r}; the fields are {', '.join(FIELDS)}" for name in table if name not in FIELDS]
    for name in ("rule", "outcome", "reason"):
        value = table.get(name)
        if not isinstance(value, str) or not value.strip():
            found.append(f"{name!r} is missing or empty")
    outcome = table.get("outcome")
    if isinstance(outcome, str) and outcome.strip() and outcome not in EXCUSABLE:
        found.append(f"outcome {outcome!r} is none of {', '.join(EXCUSABLE)}")
    if not isinstance(table.get("points", {}), dict):
        found.append('points is no table; write points = { order = "after" }')
    link = table.get("link")
    if link is not None and not (isinstance(link, str) and re.match(r"https?://|docs/[\w/-]+\.md#[\w-]+$", link)):
        found.append(f"link {link!r} is neither an http(s) address nor a section, docs/page.md#section")
    return found


def apply(result: Result, expectation: Expectation | None) -> None:
    """Turn an expected failure into xfail, in place, and into xpass what needs no excuse: a pass, or a failure that
    plain PyTorch shares. Any other end stays as it is."""
    if expectation is None:
        return
    result["expected"] = expectation.entry()
    if result["outcome"] == expectation.outcome:
        result["outcome"] = Outcome.XFAIL
    elif result["outcome"] in NEEDS_NO_EXCUSE:
        result["outcome"] = Outcome.XPASS
