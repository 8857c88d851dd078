"""Known non-conformances: entries that speak of nothing or contradict each other are refused with file and line."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from fakes import CASES

from harness import expectations, header

ENTRY = """
    # A comment.
    [[expect]]
    rule = "import/evidence/each"
    points = { kind = "calls" }
    outcome = "fail"
    reason = "it calls the device"
    link = "https://example.org/1"
"""


def read(directory: Path, text: str) -> list[expectations.Expectation]:
    path = directory / "2.99.0.toml"
    path.write_text(textwrap.dedent(text).lstrip("\n"))
    cases, _ = header.read_all(CASES)
    return expectations.read(path, cases, "expectations/stock/2.99.0.toml")


def test_an_entry_speaks_of_the_points_that_it_names(tmp_path: Path) -> None:
    (entry,) = read(tmp_path, ENTRY)
    assert entry.entry() == {
        "outcome": "fail",
        "reason": "it calls the device",
        "file": "expectations/stock/2.99.0.toml",
        "line": 2,
        "link": "https://example.org/1",
    }
    points = header.read(CASES / "import/evidence/each.py").points()
    assert [dict(point.params) for point in points if entry.matches(point)] == [{"kind": "calls"}]


def test_an_entry_may_name_several_values_or_none(tmp_path: Path) -> None:
    points = header.read(CASES / "import/evidence/each.py").points()
    (several,) = read(tmp_path, ENTRY.replace('"calls"', '["calls", "table"]'))
    assert sum(several.matches(point) for point in points) == 2
    (every,) = read(tmp_path, ENTRY.replace('points = { kind = "calls" }', ""))
    assert sum(every.matches(point) for point in points) == len(points)


def test_no_file_means_no_expectations(tmp_path: Path) -> None:
    assert expectations.read(tmp_path / "none.toml", [], "none.toml") == []


def test_what_is_no_text_file_is_refused(tmp_path: Path) -> None:
    file, target = tmp_path / "stock.toml", tmp_path / "other.toml"

    def refused() -> str:
        with pytest.raises(expectations.ExpectationError) as caught:
            expectations.read(file, [], "stock.toml")
        return str(caught.value)

    file.mkdir()
    assert refused() == "stock.toml:1: is no regular file; remove it, or write the expectations there"
    file.rmdir()
    file.symlink_to(target)
    assert "is no regular file" in refused()
    target.symlink_to(file)
    assert "stock.toml:1: " in refused()
    file.unlink()
    file.write_bytes(b"# one\n# Gr\xf6\xdfe\n")
    assert refused() == "stock.toml:2: not UTF-8: byte 0xf6"
    file.write_text("a = " + "9" * 6000)
    assert "stock.toml:1: not valid TOML" in refused()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "import/evidence/each",
            "import/evidence/elsewhere",
            ":2: there is no rule import/evidence/elsewhere; delete the entry",
        ),
        ('"calls"', '"shells"', ":2: no point of import/evidence/each has kind = 'shells'; see its matrix"),
        ("kind = ", "kinds = ", ":2: no point of import/evidence/each has kinds = 'calls'; see its matrix"),
        ('"fail"', '"bad"', ":2: outcome 'bad' is none of fail, crash, exit, timeout, leak"),
        ('"it calls the device"', '" "', ":2: 'reason' is missing or empty"),
        ("outcome", "outcomes", ":2: unknown field 'outcomes'; the fields are rule, points, outcome, reason, link"),
        ("https://example.org/1", "docs/faults.md", ":2: link 'docs/faults.md' is neither"),
        ("https://", "see ", ":2: link 'see example.org/1' is neither an http(s) address nor a section"),
        ("[[expect]]", "[[expects]]", ":1: unknown table 'expects'; write [[expect]]"),
        ("[[expect]]", "[expect]", ":1: write each entry as a table of its own"),
        ('"fail"', "fail", ":5: not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(expectations.ExpectationError) as caught:
        read(tmp_path, ENTRY.replace(old, new))
    assert f"expectations/stock/2.99.0.toml{message}" in str(caught.value)


def test_two_entries_for_one_point_are_refused(tmp_path: Path) -> None:
    general = '[[expect]]\nrule = "import/evidence/each"\noutcome = "crash"\nreason = "all of it"\n'
    with pytest.raises(expectations.ExpectationError) as caught:
        read(tmp_path, textwrap.dedent(ENTRY) + general)
    assert ":8: import/evidence/each[kind=calls] is already the subject of line 2; keep one entry" in str(caught.value)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(expectations.ExpectationError) as caught:
        read(tmp_path, ENTRY.replace("evidence/each", "evidence/elsewhere") + ENTRY.replace('"fail"', '"bad"'))
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("outcome", "becomes"), [("fail", "xfail"), ("pass", "xpass"), ("crash", "crash"), ("unsupported", "unsupported")]
)
def test_only_the_expected_end_is_expected(tmp_path: Path, outcome: str, becomes: str) -> None:
    (entry,) = read(tmp_path, ENTRY)
    result: Any = {"outcome": outcome, "expected": None}
    expectations.apply(result, entry)
    assert (result["outcome"], result["expected"]) == (becomes, entry.entry())


def test_without_an_entry_nothing_changes() -> None:
    result: Any = {"outcome": "fail", "expected": None}
    expectations.apply(result, None)
    assert result == {"outcome": "fail", "expected": None}
