"""Puts a report on disk, whole or not at all, and reads one back."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from harness.report.model import Meta, Report, build
from harness.report.page import render
from harness.report.schema import InvalidReport, check
from harness.results import Result


class ReportPaths(NamedTuple):
    """Where a report was written."""

    json: Path
    html: Path


def write(results: Iterable[Result], meta: Meta, directory: Path) -> ReportPaths:
    """Judge the rules and write report.json and report.html into `directory`, which is created if need be.

    A junit.xml in the directory is linked from
    the page. Files of an earlier run are removed first: an old report must not pass for the one that failed.

    Raises InvalidReport when the data is not a report; what there is has then been kept in report.invalid.json.
    """
    directory.mkdir(parents=True, exist_ok=True)
    results = list(results)
    json_path, html_path, rejected = (
        directory / name for name in ("report.json", "report.html", "report.invalid.json")
    )
    remove(directory)
    try:
        report = build(results, meta)
        text = json.dumps(report, indent=1, allow_nan=False)
        report = json.loads(text)  # judge what a reader will see: tuples are lists, every key is a string
        check(report, source=str(json_path))
    except InvalidReport as error:
        _reject(results, meta, rejected, error.problems, error)
    except (KeyError, ValueError, TypeError) as error:
        _reject(results, meta, rejected, [f"/: {type(error).__name__}: {error}"], error)
    _replace(json_path, text + "\n")
    write_page(report, html_path)
    return ReportPaths(json_path, html_path)


def remove(directory: Path) -> None:
    """Remove what `write` has written there, if anything."""
    for name in ("report.json", "report.html", "report.invalid.json"):
        (directory / name).unlink(missing_ok=True)


def write_page(report: Report, path: Path) -> None:
    """Render a checked report to an HTML file. A junit.xml beside it is linked."""
    _replace(path, render(report, junit="junit.xml" if (path.parent / "junit.xml").is_file() else None))


def load(path: Path) -> Report:
    """Read and check a report.

    Raises OSError when it cannot be read and InvalidReport when it is not JSON or not a report.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidReport(str(path), [f"byte {error.start}: not UTF-8"]) from error
    except json.JSONDecodeError as error:
        raise InvalidReport(str(path), [f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}"]) from error
    check(report, source=str(path))
    return report


def _reject(results: Any, meta: Any, path: Path, problems: list[str], cause: Exception) -> NoReturn:
    # A night's results are worth more than their form: keep them, in a file that nobody takes for a report.
    _replace(
        path,
        json.dumps({"problems": problems, "meta": meta, "results": results}, indent=1, default=repr, skipkeys=True),
    )
    raise InvalidReport(
        f"harness error: the run made no report, its raw results are in {path}", [str(problem) for problem in problems]
    ) from cause


def _replace(path: Path, text: str) -> None:
    # Lone surrogates come from undecodable output of a case; they must not cost the report.
    data = text.encode("utf-8", errors="backslashreplace")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(0o644)  # mkstemp makes it private, but a report is there to be served
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
