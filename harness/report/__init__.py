"""What a run leaves behind: report.json for machines, report.html for people, a table for the terminal.

`write` is given one result per point as the plugin got it back, `table` and `python -m harness.report` start from the
finished report, so that a report can be read again long after the run that made it.
"""

from __future__ import annotations

from harness.report.files import ReportPaths, load, remove, write
from harness.report.model import Meta, build
from harness.report.schema import InvalidReport, check
from harness.report.terminal import table

__all__ = ["InvalidReport", "Meta", "ReportPaths", "build", "check", "load", "remove", "table", "write"]
