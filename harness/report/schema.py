"""Refuses a report that is not what report.schema.json promises, and says where it goes wrong.

A report is a gate's evidence: one that is malformed or contradicts itself must never be mistaken for a good one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

from harness.report.model import Report, totals, verdict

SHOWN = 10


class InvalidReport(Exception):
    """A report that breaks its schema or contradicts itself. The text lists JSON pointers with what is wrong there."""

    def __init__(self, source: str, problems: list[str]) -> None:
        self.source = source
        self.problems = problems
        shown = [f"  {problem}" for problem in problems[:SHOWN]]
        if len(problems) > SHOWN:
            shown.append(f"  ... and {len(problems) - SHOWN} more")
        super().__init__("\n".join([f"{source}: not a valid conformance report", *shown]))


@cache
def schema() -> dict[str, Any]:
    """The schema as shipped with the package."""
    return json.loads(files("harness.report").joinpath("report.schema.json").read_text(encoding="utf-8"))


@cache
def _validator() -> Validator:
    kind = validator_for(schema())
    kind.check_schema(schema())
    return kind(schema())


def check(report: Any, source: str = "report") -> None:
    """Raise InvalidReport, naming `source`, unless the report meets the schema and is consistent in itself."""
    problems = [_explain(error) for error in _validator().iter_errors(report)]
    if not problems:  # consistency of something malformed means nothing
        problems = list(_contradictions(report))
    if problems:
        raise InvalidReport(source, problems)


def pointer(path: Any) -> str:
    """RFC 6901 pointer; the document itself is shown as "/" because an empty string is easily overlooked."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path) or "/"


def _explain(error: ValidationError) -> str:
    while error.context:  # null or an object: the branch that got furthest tells what is wrong
        error = max(error.context, key=lambda inner: len(inner.absolute_path))
    message = error.message if len(error.message) <= 300 else error.message[:140] + " ... " + error.message[-140:]
    meaning = error.schema.get("description") if isinstance(error.schema, dict) else None
    if meaning and error.validator != "additionalProperties":
        message = f"{message} ({meaning})"
    return f"{pointer(error.absolute_path)}: {message}"


def _contradictions(report: Report) -> Iterator[str]:
    rules: set[str] = set()
    for index, rule in enumerate(report["rules"]):
        if rule["id"] in rules:
            yield f"/rules/{index}/id: {rule['id']!r} appears twice"
        rules.add(rule["id"])
        points: set[str] = set()
        for number, point in enumerate(rule["points"]):
            if point["id"] in points:
                yield f"/rules/{index}/points/{number}/id: {point['id']!r} appears twice in rule {rule['id']}"
            points.add(point["id"])
        right = verdict(point["outcome"] for point in rule["points"])
        if rule["verdict"] != right:
            yield f"/rules/{index}/verdict: {rule['verdict']!r}, but the points of {rule['id']} make it {right!r}"
    counted = totals(report["rules"])
    for outcome, count in report["totals"].items():
        if count != counted[outcome]:
            yield f"/totals/{outcome}: {count}, but the rules hold {counted[outcome]} such points"
