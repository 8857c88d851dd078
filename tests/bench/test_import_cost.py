"""The benchmark of the import's cost: that it runs, what it writes, how it sums up; never what the clock showed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from deadlines import HANG
from rich.console import Console

from bench import import_cost


def test_one_round_reports_the_three_sides(tmp_path: Path) -> None:
    command = [sys.executable, import_cost.__file__, "--rounds", "1", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "import_cost.json").read_text())
    sides = report["sides"]
    assert (
        sides["floor"]["modules"]["median"] < sides["lazy"]["modules"]["median"] < sides["stock"]["modules"]["median"]
    )
    for side in sides.values():
        assert [len(side["rounds"]), side["seconds"]["low"] > 0, side["megabytes"]["low"] > 0] == [1, True, True]
    for row in report["targets"]:
        assert row["met"] == (row["value"] <= row["target"]), row
        assert row["name"] in done.stdout
    assert ET.parse(tmp_path / "import_cost.svg").getroot().tag.endswith("svg")


def _report(monkeypatch: pytest.MonkeyPatch, seconds: dict[str, list[float]]) -> dict:
    asked: list[str] = []

    def once(side: str) -> dict[str, float]:
        asked.append(side)
        return {"modules": 100, "seconds": seconds[side][asked.count(side) - 1], "megabytes": 70.0}

    monkeypatch.setattr(import_cost, "once", once)
    monkeypatch.setattr(import_cost.simnpu, "build_id", lambda: "a <build>")
    report = import_cost.measure(len(seconds["lazy"]) - 1)
    assert asked == [*import_cost.SIDES] * len(seconds["lazy"])
    return report


def test_sides_take_turns_and_the_first_round_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"floor": [9.0, 1, 1, 1], "lazy": [9.0, 2, 3, 4], "stock": [9.0, 10, 12, 11]}
    report = _report(monkeypatch, seconds)
    assert report["sides"]["lazy"]["seconds"] == {"low": 2.5, "median": 3, "high": 3.5}
    ratio = next(row for row in report["targets"] if "CPU" in row["name"])
    assert ratio["value"] == pytest.approx(3 / 11)
    assert not ratio["met"]


def test_the_table_and_the_picture_show_the_medians(monkeypatch: pytest.MonkeyPatch) -> None:
    report = _report(monkeypatch, {"floor": [1, 0.125], "lazy": [1, 0.25], "stock": [1, 4]})
    console = Console(record=True, width=120, file=io.StringIO())
    import_cost.show(report, console)
    text = console.export_text()
    assert "MISSED" not in text
    root = ET.fromstring(import_cost.picture(report))
    space = "{http://www.w3.org/2000/svg}"
    bars = [float(bar.get("width", "0")) for bar in root.iter(f"{space}rect")]
    assert len(bars) == 9
    assert bars[3] == pytest.approx(bars[5] / 32, rel=0.02)
    said = [each.text for each in root.iter(f"{space}text")]
    for number in ("0.125", "0.250", "4.000"):
        assert number in text
        assert number in said


def test_a_failing_import_is_told_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_cost, "PROGRAM", "raise SystemExit('no such library')")
    monkeypatch.setattr(import_cost.simnpu, "environ", dict)
    with pytest.raises(RuntimeError, match=r"wheel as released.*\n.*no such library"):
        import_cost.once("stock")
