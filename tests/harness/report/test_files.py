"""Writing is all or nothing, an invalid run is loud and keeps its data, and a report can be shown again later."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deadlines import HANG

from harness.report import InvalidReport, ReportPaths, load, write
from harness.report.__main__ import main

from . import sample


def test_writes_a_report_and_a_page(tmp_path: Path) -> None:
    paths = write(sample.results(), sample.meta(), tmp_path / "new" / "directory")
    assert paths == ReportPaths(tmp_path / "new/directory/report.json", tmp_path / "new/directory/report.html")
    assert sorted(path.name for path in paths.json.parent.iterdir()) == ["report.html", "report.json"]
    report = load(paths.json)
    assert len(report["rules"]) == 16
    assert paths.html.stat().st_mode & 0o777 == 0o644


def test_invalid_run_is_loud_keeps_its_results_and_leaves_no_old_report(tmp_path: Path) -> None:
    write(sample.results(), sample.meta(), tmp_path)
    results = sample.results()
    results[0]["outcome"] = "xfail"
    results[0]["expected"] = None
    with pytest.raises(InvalidReport) as caught:
        write(results, sample.meta(), tmp_path)
    assert "harness error" in str(caught.value)
    assert "/expected: None is not of type 'object'" in str(caught.value)
    assert str(tmp_path / "report.invalid.json") in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["report.invalid.json"]
    kept = json.loads((tmp_path / "report.invalid.json").read_text(encoding="utf-8"))
    assert len(kept["results"]) == len(results)
    assert kept["problems"] == caught.value.problems


@pytest.mark.parametrize(
    ("notes", "problem"),
    [({"ratio": float("nan")}, "ValueError"), ({"modules": {"a", "b"}}, "TypeError"), ({("a", 1): 2}, "TypeError")],
)
def test_what_json_cannot_say_is_an_error(tmp_path: Path, notes: dict, problem: str) -> None:
    with pytest.raises(InvalidReport, match=problem):
        write([sample.point(sample.rule("a/b/1"), notes=notes)], sample.meta(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.invalid.json"]


def test_result_without_its_rule_is_an_error(tmp_path: Path) -> None:
    result = sample.point(sample.rule("a/b/1"))
    del result["rule"]["title"]
    with pytest.raises(InvalidReport, match="KeyError: 'title'"):
        write([result], sample.meta(), tmp_path)


def test_valid_run_removes_the_traces_of_an_invalid_one(tmp_path: Path) -> None:
    (tmp_path / "report.invalid.json").write_text("{}")
    write(sample.results(), sample.meta(), tmp_path)
    assert not (tmp_path / "report.invalid.json").exists()


def test_failed_write_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write(sample.results(), sample.meta(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_undecodable_output_costs_nothing(tmp_path: Path) -> None:
    odd = "bytes \udcff\udc80 and \x00\x07"
    paths = write([sample.point(sample.rule("a/b/1"), "fail", stdout=odd)], sample.meta(), tmp_path)
    assert load(paths.json)["rules"][0]["points"][0]["stdout"] == odd
    assert "bytes \\udcff\\udc80 and ␀␇" in paths.html.read_text(encoding="utf-8")


def test_junit_is_linked_when_it_lies_beside(tmp_path: Path) -> None:
    assert "junit.xml" not in write(sample.results(), sample.meta(), tmp_path).html.read_text(encoding="utf-8")
    (tmp_path / "junit.xml").write_text("<testsuites/>")
    assert '<a href="junit.xml">' in write(sample.results(), sample.meta(), tmp_path).html.read_text(encoding="utf-8")


def test_command_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write(sample.results(), sample.meta(), tmp_path)
    assert main([str(paths.json)]) == 0
    assert "import/trigger/reload" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_command_renders_the_same_page_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write(sample.results(), sample.meta(), tmp_path)
    assert main([str(paths.json), "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "report.html").read_bytes() == paths.html.read_bytes()
    assert f"wrote {tmp_path / 'again' / 'report.html'}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1, column 1: not JSON"),
        (b'{"schema": 1,', "line 1, column 14: not JSON"),
        (b"\xff\xfe", "byte 0: not UTF-8"),
        (b'{"schema": 2}', "/schema: 1 was expected"),
        (b"[]", "/: [] is not of type 'object'"),
    ],
)
def test_command_explains_a_bad_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert main([str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"{path}: not a valid conformance report\n")
    assert message in captured.err


def test_command_explains_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'none.json'}: No such file or directory\n"


def test_command_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness.report", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    assert "examples:" in done.stdout
    assert "exit codes:" in done.stdout
    path = tmp_path / "bad.json"
    path.write_text("{}")
    command = [sys.executable, "-m", "harness.report", str(path)]
    assert subprocess.run(command, capture_output=True, check=False, timeout=HANG).returncode == 2


def test_command_ends_silently_when_its_reader_has_left(tmp_path: Path) -> None:
    written = write(sample.results(), sample.meta(), tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "harness.report", str(written.json)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=HANG)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
