"""Shows a report again: the table on the terminal and, on request, the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness import output
from harness.report.files import load, write_page
from harness.report.schema import InvalidReport
from harness.report.terminal import table

EPILOG = """\
examples:
  python -m harness.report build/conformance/report.json          check it and print the table
  python -m harness.report build/conformance/report.json -o pages also write pages/report.html

exit codes: 0 the report is valid, whatever it says about the subject; 2 it is not, or a file cannot be read or written.
"""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m harness.report",
        description="Check a report.json, print it as a table, and render it as one self-contained HTML page.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("report", type=Path, help="report.json of a run")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="write report.html into this directory")
    with output.for_anybody():
        return _show(parser.parse_args(argv))


def _show(options: argparse.Namespace) -> int:
    try:
        report = load(options.report)
        sys.stdout.write(table(report))
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
            write_page(report, options.output / "report.html")
            sys.stdout.write(f"\nwrote {options.output / 'report.html'}\n")
    except InvalidReport as error:
        sys.stderr.write(
            f"{error}\nA report is written by `pytest cases`; see harness/report/report.schema.json for its form.\n"
        )
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stderr.write(f"{error.filename or options.report}: {error.strerror or error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
