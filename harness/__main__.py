"""The suite without pytest: run one point with its output live, or read the catalogue of rules."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from . import catalogue, devices, header, output, scratch, subjects, watchdog
from .explain import explain
from .inside.protocol import MARKER
from .report.text import plain
from .results import NOT_JUDGED, Outcome
from .runner import Runner

ABOUT = """\
Judge one point of the conformance suite, or list the suite's rules.

A case is a program that checks one rule of torch_npu, started in a fresh interpreter once per point of its matrix.
`pytest cases -n auto` judges them all and writes a report; `run` repeats a single point under the same conditions
(subject, device, environment, timeout), with its output on this terminal.
"""
EXAMPLES = """\
examples:
  python -m harness rules                                        every rule: id, level, points, releases, file, sentence
  python -m harness rules import/lazy fsdp                       those of two prefixes
  python -m harness rules --area import --match trigger          a text in id, sentence or file name
  python -m harness rules --json | jq '.[].rule'                 for programs
  python -m harness run cases/import/lazy/order.py order=torch_only  one point
  python -m harness run cases/import/lazy/order.py               the points that there are, if it has several
  python -m harness run CASE KEY=VALUE --control                 its control: plain PyTorch alone
  python -m harness run CASE KEY=VALUE --jitter 8f3a.17          one repetition of a soak, with the delays that it had
  python cases/import/lazy/order.py order=torch_only             by hand, in this very environment: for debuggers

exit codes: 0 the point passes, or plain PyTorch fails likewise; 1 it does not; 2 it cannot be run: the message says why
and what to do.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    with output.for_anybody():
        options = _parsed(arguments)
        return _run(options) if options.command == "run" else _rules(options)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, left = parser.parse_known_args(arguments)
    if options.command == "run":
        # argparse takes the parameters for complete at the first option behind the case.
        options.point += [word for word in left if "=" in word and not word.startswith("-")]
        left = [word for word in left if word not in options.point]
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="run | rules")

    run = commands.add_parser("run", help="judge one point in a fresh interpreter, with live output")
    run.add_argument("case", type=Path, help="case file, e.g. cases/import/lazy/order.py")
    run.add_argument(
        "point", nargs="*", metavar="key=value", help="parameters of the point; a single value may be left out"
    )
    devices.add_options(run.add_argument)
    run.add_argument("--control", action="store_true", help="run the point's control instead: plain PyTorch alone")
    run.add_argument("--jitter", metavar="SEED", help="with the random delays of this repetition of a soak")

    rules = commands.add_parser("rules", help="list the rules")
    rules.add_argument("prefix", nargs="*", help="whole segments that an id starts with: import, import/lazy")
    rules.add_argument("--area", action="append", default=[], help="a folder of cases/; the same as its name as prefix")
    rules.add_argument("--match", metavar="TEXT", help="only rules with this text in id, sentence or file name")
    rules.add_argument("--json", action="store_true", help="an array of objects, with the matrix and all else")
    rules.add_argument(
        "--cases", type=Path, default=Path("cases"), metavar="DIR", help="directory of the cases (cases)"
    )
    return parser


def _run(options: argparse.Namespace) -> int:
    try:
        case = header.read(options.case)
        point = case.point(options.point)
        if options.control and not point.controlled:
            raise ValueError("this point has no control; the field `control` of the case's header says which have")
        installed = subjects.find(options.subject, options.subject_path)
        device = devices.find(options.device, prepare=True)
    except FileNotFoundError:
        return _cannot(f"there is no file {options.case}; `python -m harness rules` lists the rules")
    except ValueError as error:
        return _cannot(f"{options.case}: {error}")
    except (header.HeaderError, subjects.Unavailable) as error:
        return _cannot(str(error))
    scratch.sweep()
    runner = Runner(installed, device, Path.cwd())
    print(f"{point.id}: {case.title}")
    print(
        f"subject {installed.subject.name}, torch_npu {installed.torch_npu}, torch {installed.torch}; "
        f"device {device.name} ({device.detail})",
        flush=True,
    )
    if not runner.applies(case):
        print(f"note: the rule applies to releases {case.releases}, this is {installed.release}", flush=True)
    run = runner.control if options.control else runner.run
    with watchdog.watching(runner.name, MARKER):
        result = run(point, live=True, soak=options.jitter)
    if result["outcome"] == Outcome.PASS:
        print(f"pass: {result['checks']} checks, {result['seconds']} s")
        return 0
    print(plain(explain(result)))
    if result["outcome"] in NOT_JUDGED:
        return 2
    return 0 if result["outcome"] == Outcome.UPSTREAM else 1


def _rules(options: argparse.Namespace) -> int:
    suite = catalogue.read(options.cases)
    prefixes = [*options.prefix, *options.area]
    points = [
        point
        for case in suite.cases
        if options.match is None or catalogue.mentions(case, options.match)
        for point in case.points()
        if catalogue.selected(point, prefixes)
    ]
    problems = [*map(str, suite.errors), *suite.unknown(prefixes)]
    if not options.cases.is_dir():
        problems = [f"there is no directory {options.cases}; run this at the root of the suite, or use --cases DIR"]
    print(catalogue.as_json(points) if options.json else catalogue.listing(points))
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 2 if problems else 0


def _cannot(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
