"""The schema takes a full report and refuses each kind of corruption, naming the place."""

from __future__ import annotations

import copy
import json
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import results
from harness.report import InvalidReport, build, check, model
from harness.report.model import VERDICTS
from harness.report.schema import pointer, schema
from harness.results import EXCUSABLE, Outcome

from . import sample

Report = dict[str, Any]
DOCS = Path(__file__).parents[3] / "docs"
GOOD: Report = json.loads(json.dumps(build(sample.results(), sample.meta())))


def place(outcome: str) -> tuple[int, int]:
    """Where the sample has a point with this outcome."""
    for index, rule in enumerate(GOOD["rules"]):
        for number, point in enumerate(rule["points"]):
            if point["outcome"] == outcome:
                return index, number
    raise LookupError(outcome)


def problems(report: Any) -> list[str]:
    with pytest.raises(InvalidReport) as caught:
        check(report)
    return caught.value.problems


def objects(node: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every object schema below a node, with where it stands in the schema."""
    found = [(path, node)] if "properties" in node and "if" not in node and "additionalProperties" in node else []
    for key, inner in node.items():
        if isinstance(inner, dict):
            found += objects(inner, f"{path}/{key}")
    return found


def test_full_sample_is_valid() -> None:
    check(GOOD)


def test_run_without_rules_is_valid() -> None:
    check(build([], sample.meta()))


TYPES: dict[Any, str] = {str: "string", Outcome: "string", int: "integer", float: "number", type(None): "null"}


def allowed(node: dict[str, Any]) -> set[str]:
    """Types of JSON that a schema lets through."""
    if "$ref" in node:
        return allowed(schema()["$defs"][node["$ref"].removeprefix("#/$defs/")])
    if "oneOf" in node:
        return set().union(*map(allowed, node["oneOf"]))
    if "const" in node or "enum" in node:
        return {TYPES[type(value)] for value in node.get("enum", [node.get("const")])}
    return {node["type"]} if isinstance(node["type"], str) else set(node["type"])


def typed(kind: Any) -> set[str]:
    """Types of JSON that become this type of Python."""
    if kind in TYPES:
        return {TYPES[kind]}
    if typing.get_origin(kind) is list:
        return {"array"}
    if typing.get_origin(kind) is dict or typing.is_typeddict(kind):
        return {"object"}
    return set().union(*map(typed, typing.get_args(kind)))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (model.Report, None),
        (model.JudgedRule, "rule"),
        (results.Point, "point"),
        (results.Control, "control"),
        (results.Soak, "soak"),
        (results.Expected, "expectation"),
        (results.Failure, "failure"),
    ],
)
def test_code_and_schema_know_the_same_fields(kind: Any, name: str | None) -> None:
    node = schema() if name is None else schema()["$defs"].get(name) or schema()["properties"][name]
    fields = typing.get_type_hints(kind)
    assert set(fields) == set(node["required"])
    for field, its in fields.items():
        assert typed(its) == allowed(node["properties"][field]), field


def test_code_and_schema_know_the_same_words() -> None:
    definitions = schema()["$defs"]
    assert definitions["outcome"]["enum"] == list(Outcome) == schema()["properties"]["totals"]["required"]
    assert definitions["expectation"]["properties"]["outcome"]["enum"] == list(EXCUSABLE)
    controls = set(Outcome) - {Outcome.FLAKE, Outcome.UPSTREAM, Outcome.XFAIL, Outcome.XPASS}
    assert set(definitions["control"]["properties"]["outcome"]["enum"]) == controls
    assert set(definitions["rule"]["properties"]["verdict"]["enum"]) == set(VERDICTS)


def test_the_documentation_knows_the_same_words() -> None:
    (outcomes,) = re.findall(r"(?ms)^- \*\*outcome\*\*(.*?)^- \*\*", (DOCS / "architecture.md").read_text())
    assert set(re.findall(r"`([a-z-]+)`", outcomes)) == set(Outcome)
    table = re.findall(r"(?m)^\| (`.*?) \|", (DOCS / "debugging.md").read_text())
    fields = {field for cell in table for field in re.findall(r"`(\w+)[\w.]*`", cell)}
    assert len(fields) > 5
    assert fields <= set(typing.get_type_hints(results.Point))


def test_no_object_takes_unknown_keys_and_no_key_is_optional() -> None:
    found = objects(schema())
    assert len(found) == 12
    for path, node in found:
        assert node["additionalProperties"] is False, path
        assert set(node["properties"]) == set(node["required"]), path


def test_every_property_of_a_rule_and_point_is_explained() -> None:
    for name in ("rule", "point", "expectation", "failure", "control", "soak"):
        for key, node in schema()["$defs"][name]["properties"].items():
            reference = node.get("$ref", "").removeprefix("#/$defs/")
            assert (
                node.get("description") or schema()["$defs"].get(reference, {}).get("description") or key == "points"
            ), f"{name}.{key} has no description"


@pytest.mark.parametrize("outcome", Outcome)
def test_removing_any_key_of_a_point_is_found(outcome: str) -> None:
    index, number = place(outcome)
    for key in list(GOOD["rules"][index]["points"][number]):
        report = copy.deepcopy(GOOD)
        del report["rules"][index]["points"][number][key]
        assert any(f"'{key}' is a required property" in problem for problem in problems(report)), key


def change(path: str, value: Any) -> Callable[[Report], None]:
    def apply(report: Report) -> None:
        *parents, last = path.strip("/").split("/")
        node: Any = report
        for part in parents:
            node = node[int(part) if isinstance(node, list) else part]
        node[int(last) if isinstance(node, list) else last] = value

    return apply


def at(outcome: str, key: str, value: Any) -> tuple[str, Any]:
    index, number = place(outcome)
    return f"/rules/{index}/points/{number}/{key}", value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/schema", 2),
        ("/surprise", 1),
        ("/suite/started", "yesterday"),
        ("/suite/started", "2026-11-29T13:05:00"),
        ("/suite/seconds", -1),
        ("/suite/version", ""),
        ("/subject/torch", None),
        ("/subject/extra", "x"),
        ("/device/detail", 3),
        ("/totals/pass", -1),
        ("/totals/pass", 1.5),
        ("/totals/skipped", 0),
        ("/rules", {}),
        ("/rules/0/id", "no-slash"),
        ("/rules/0/id", "a b/c/1"),
        ("/rules/0/title", ""),
        ("/rules/0/level", "may"),
        ("/rules/0/verdict", "fine"),
        ("/rules/0/points", []),
        ("/rules/0/surprise", 1),
        at("pass", "outcome", "passed"),
        at("pass", "checks", 0),
        at("pass", "checks", True),
        at("pass", "failure", sample.failure()),
        at("pass", "seconds", "1.0"),
        at("pass", "params", {"order": ["a"]}),
        at("pass", "stdout", None),
        at("pass", "leaked", "none"),
        at("pass", "reproduce", ""),
        at("pass", "surprise", 1),
        at("fail", "failure", None),
        at("fail", "failure/message", None),
        at("fail", "failure/import_stack", "one string"),
        at("fail", "failure/facts", {}),
        at("crash", "signal", None),
        at("crash", "signal", 11),
        at("exit", "exit_code", None),
        at("leak", "leaked", []),
        at("unsupported", "reason", None),
        at("unsupported", "reason", ""),
        at("harness-error", "reason", None),
        at("xfail", "expected", None),
        at("xfail", "expected/reason", "  \n"),
        at("xfail", "expected/outcome", "pass"),
        at("xfail", "expected/line", 0),
        at("xfail", "expected/link", "javascript:alert(1)"),
        at("xpass", "expected", None),
        at("xpass", "checks", 0),
        at("upstream", "control", None),
        at("upstream", "control", sample.control("pass")),
        at("flake", "soak", None),
        at("flake", "soak", sample.soak(outcomes={"fail": 3})),
    ],
)
def test_corruption_is_refused_and_located(path: str, value: Any) -> None:
    report = copy.deepcopy(GOOD)
    change(path, value)(report)
    located = [problem.split(": ", 1)[0] for problem in problems(report)]
    parent = path.rsplit("/", 1)[0] or "/"
    assert {path, parent} & set(located) or located[0].startswith(path + "/"), located


@pytest.mark.parametrize("report", [None, [], "report", 1, {}])
def test_something_else_is_refused(report: Any) -> None:
    assert problems(report)[0].startswith("/: ")


def test_a_report_may_not_contradict_itself() -> None:
    report = copy.deepcopy(GOOD)
    report["totals"]["pass"] += 1
    assert problems(report) == ["/totals/pass: 17, but the rules hold 16 such points"]

    report = copy.deepcopy(GOOD)
    index = place("fail")[0]
    report["rules"][index]["verdict"] = "conforms"
    assert problems(report) == [
        f"/rules/{index}/verdict: 'conforms', but the points of import/trigger/reload make it 'broken'"
    ]

    report = copy.deepcopy(GOOD)
    report["rules"].append(copy.deepcopy(report["rules"][0]))
    assert any("appears twice" in problem for problem in problems(report))

    report = copy.deepcopy(GOOD)
    index, number = place("pass")
    report["rules"][index]["points"].append(copy.deepcopy(report["rules"][index]["points"][number]))
    assert any(f"appears twice in rule {report['rules'][index]['id']}" in problem for problem in problems(report))


def test_message_teaches() -> None:
    report = copy.deepcopy(GOOD)
    index, number = place("xfail")
    report["rules"][index]["points"][number]["expected"]["reason"] = ""
    (problem,) = problems(report)
    assert problem.startswith(f"/rules/{index}/points/{number}/expected/reason: ")
    assert "why it matters" in problem


def test_long_lists_of_problems_are_cut_but_counted() -> None:
    report = copy.deepcopy(GOOD)
    for rule in report["rules"]:
        for point in rule["points"]:
            point["checks"] = -1
    with pytest.raises(InvalidReport, match=r"\.\.\. and \d+ more") as caught:
        check(report, source="x.json")
    assert str(caught.value).startswith("x.json: not a valid conformance report\n  /rules/0/points/0/checks: ")
    assert len(str(caught.value).splitlines()) == 12


def test_pointer_escapes() -> None:
    assert pointer(["rules", 0, "notes", "a/b~c"]) == "/rules/0/notes/a~1b~0c"
    assert pointer([]) == "/"


def test_schema_is_beside_the_code_that_ships_it() -> None:
    import harness.report

    package = Path(harness.report.__file__).parent
    assert json.loads((package / "report.schema.json").read_text(encoding="utf-8")) == schema()
