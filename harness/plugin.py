"""The pytest side: collects cases statically (pytest never imports one), runs each point in a fresh interpreter, and
writes the report. It sleeps in a run whose arguments lie outside the cases directory."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import fcntl
import json
import os
import shlex
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from . import (
    __version__,
    catalogue,
    devices,
    expectations,
    header,
    report,
    scratch,
    soak,
    subjects,
    watchdog,
)
from .explain import explain
from .inside.protocol import MARKER
from .report.text import plain
from .results import URGENT, Outcome, Result, label
from .runner import Runner

PARTIAL = (
    "conformance_rules",
    "known",
    "keyword",
    "markexpr",
    "deselect",
    "ignore",
    "ignore_glob",
    "lf",
    "stepwise",
    "maxfail",
)
"""Options of pytest and its plugins that leave something out; --certify refuses them."""

UNHEEDED = {"known": "--known", "keyword": "-k", "markexpr": "-m", "deselect": "--deselect"}
"""What chooses points when pytest collects them, which a dry run does not: by name of the option."""

LETTERS = {**{str(outcome): outcome[0].upper() for outcome in URGENT}, str(Outcome.XPASS): "P"}


@dataclass
class Run:
    """What one process of a run on cases knows."""

    suite: catalogue.Suite
    runner: Runner
    expected: list[expectations.Expectation]
    expected_file: str
    directory: Path
    certify: bool
    repetitions: int | None
    """Of a soak; None: each point once."""
    seed: str
    known: frozenset[str] | None
    """The points that are judged (--known); None: all."""
    started: datetime.datetime = field(default_factory=lambda: datetime.datetime.now(datetime.timezone.utc))
    clock: float = field(default_factory=time.monotonic)
    selected: int = 0
    results: dict[str, dict[int, Result]] = field(default_factory=dict)
    """By point and repetition (0: the only one)."""
    written: report.ReportPaths | None = None
    problem: str | None = None

    def merged(self) -> list[Result]:
        """One result for each point that has run."""
        if self.repetitions is None:
            return [only for results in self.results.values() for only in results.values()]
        return [
            soak.merged([results[number] for number in sorted(results)], self.seed, self.repetitions)
            for results in self.results.values()
        ]


RUN = pytest.StashKey[Run]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance of torch_npu (pytest cases …)")
    devices.add_options(group.addoption)
    group.addoption(
        "--rule",
        action="append",
        default=[],
        dest="conformance_rules",
        metavar="PREFIX",
        help="judge only rules below this folder (import, import/lazy), or one (import/lazy/order); repeatable",
    )
    group.addoption(
        "--known",
        choices=list(subjects.SUBJECTS),
        metavar="SUBJECT",
        help="judge only the points that SUBJECT is known to fail (expectations/SUBJECT/RELEASE.toml): what a mended "
        "wheel, or the other subject, must get right first",
    )
    group.addoption(
        "--soak",
        type=_repetitions,
        metavar="N",
        help="run each point N times with random delays, threads changing places at every chance: for races",
    )
    group.addoption("--soak-seed", metavar="SEED", help="the delays of an earlier soak, whose header tells its seed")
    group.addoption("--dryrun", action="store_true", help="list the rules with level and points; run nothing")
    group.addoption(
        "--certify",
        action="store_true",
        help="allow no gap: the whole suite, nothing unsupported, only listed expectations",
    )
    group.addoption(
        "--report-dir",
        type=Path,
        default=Path("build/conformance"),
        metavar="DIR",
        help="where report.json, report.html and junit.xml go (default: %(default)s)",
    )
    parser.addini("conformance_cases", "directory of the conformance cases", default="cases")
    parser.addini("conformance_expectations", "directory of known non-conformances", default="expectations")


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    if not config.option.dryrun:
        return None
    suite = catalogue.read(_cases(config))
    points = [
        point
        for case in suite.cases
        if _named(config, case.path)
        for point in case.points()
        if catalogue.selected(point, config.option.conformance_rules)
    ]
    unheeded = [name for option, name in UNHEEDED.items() if getattr(config.option, option)]
    if any("::" in argument for argument in config.args):
        unheeded.append("::")
    problems = [
        *map(str, suite.errors),
        *suite.unknown(config.option.conformance_rules),
        *_missing(config),
        *(f"--dryrun lists by path and --rule and does not heed {name}; use --collect-only" for name in unheeded),
    ]
    print(catalogue.listing(points))
    for problem in problems:
        print(f"ERROR: {problem}", file=sys.stderr)
    return int(pytest.ExitCode.USAGE_ERROR if problems else pytest.ExitCode.OK)


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """`-n auto`: one more than xdist would take. Points wait as well, most of all for what hangs."""
    number = yield
    named = "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ
    return number + 1 if _concerns_cases(config) and not named else number


@pytest.hookimpl(tryfirst=True)  # before junitxml and xdist read the options that are set here
def pytest_configure(config: pytest.Config) -> None:
    suite_directory = _cases(config)
    if not _concerns_cases(config):
        if config.option.certify:
            raise pytest.UsageError(f"--certify judges the whole suite; name its directory: pytest {suite_directory}")
        return
    suite = catalogue.read(suite_directory)
    unknown = suite.unknown(config.option.conformance_rules)
    if unknown:
        raise pytest.UsageError("\n".join(unknown))
    if missing := _missing(config):
        # pytest would say so too, after the report of the last run has been replaced by an empty one.
        raise pytest.UsageError("\n".join(missing))
    if config.option.certify:
        _refuse_partial(config, suite_directory)
    runs = not config.option.collectonly
    controller = not hasattr(config, "workerinput")
    try:
        installed = subjects.find(config.option.subject, config.option.subject_path)
        device = devices.find(config.option.device, prepare=runs and controller)
    except subjects.Unavailable as error:
        raise pytest.UsageError(str(error)) from None

    shared = getattr(config, "workerinput", {}).get("conformance_run")
    runner = Runner(installed, device, config.rootpath, **({"name": shared} if shared else {}))
    shown, expected = _expected(config, suite, runner, installed.subject.name)
    known = None
    if config.option.known is not None:
        listed, entries = _expected(config, suite, runner, config.option.known)
        if not entries:
            raise pytest.UsageError(f"--known {config.option.known}: nothing is listed in {listed}")
        points = (point for case in suite.cases for point in case.points())
        known = frozenset(point.id for point in points if any(entry.matches(point) for entry in entries))

    directory = config.invocation_params.dir / config.option.report_dir
    if config.option.soak_seed is None:
        config.option.soak_seed = soak.new_seed()  # xdist hands it on to the workers
    elif config.option.soak is None:
        raise pytest.UsageError("--soak-seed SEED says which delays a soak has; add --soak N")
    config.stash[RUN] = Run(
        suite,
        runner,
        expected,
        shown,
        directory,
        config.option.certify,
        config.option.soak,
        config.option.soak_seed,
        known,
    )
    if runs and controller and getattr(config.option, "xmlpath", "") is None:  # absent: -p no:junitxml
        config.option.xmlpath = str(directory / "junit.xml")
    cleanup = contextlib.ExitStack()
    config.add_cleanup(cleanup.close)
    if runs and controller:
        cleanup.enter_context(_prepare(directory))
        cleanup.enter_context(watchdog.watching(runner.name, MARKER))
    if runs:
        # SIGTERM as Ctrl-C: the case ends with the run, and leaves no directory behind. CI systems and timeout(1) send
        # it.
        interrupt = _Interrupt()
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as xdist's workers do with Ctrl-C
                cleanup.callback(signal.signal, number, signal.signal(number, interrupt))
        if controller:
            scratch.sweep()
    # xdist replaces a dead worker and can hang over it. No case runs inside a worker, so a dead one is a fault to see.
    if getattr(config.option, "maxworkerrestart", "") is None:
        config.option.maxworkerrestart = "0"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker of xdist marks its processes as this run's."""
    run = node.config.stash.get(RUN, None)
    if run is not None:
        node.workerinput["conformance_run"] = run.runner.name


def pytest_report_header(config: pytest.Config) -> list[str] | None:
    run = config.stash.get(RUN, None)
    if run is None:
        return None
    installed, device = run.runner.installed, run.runner.device
    apart = sum(not run.runner.applies(case) for case in run.suite.cases)
    rules = f"{len(run.suite.cases)} in {run.runner.relative(run.suite.directory)}"
    if apart:
        rules += f", {apart} of them not about release {installed.release}"
    lines = [
        f"conformance {__version__}: subject {installed.subject.name}, release {installed.release}"
        + (f", from {installed.path}" if installed.path else ""),
        f"versions: torch_npu {installed.torch_npu}, torch {installed.torch}, Python {_python()}",
        f"device: {device.name} x{device.count} ({device.detail})",
        f"rules: {rules}; {len(run.expected)} expectations in {run.expected_file}",
    ]
    if run.repetitions is not None:
        lines.append(f"soak: each point {run.repetitions} times; again with --soak-seed {run.seed}")
    return lines


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    collectors = yield
    if _is_case(parent.config, file_path):
        # Instead of what other plugins made of it (a Module, a doctest): those would import the case.
        return [CaseFile.from_parent(parent, path=file_path)]
    return collectors


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    run = config.stash.get(RUN, None)
    if run is None:
        return
    points = [item for item in items if isinstance(item, PointItem)]
    kept = [
        item
        for item in points
        if catalogue.selected(item.point, config.option.conformance_rules)
        and (run.known is None or item.point.id in run.known)
    ]
    dropped = [item for item in points if item not in set(kept)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
    # Every worker of xdist must have the same order.
    # A soak does all points once before it does them again: an interrupted one has done them all about as often.
    kept.sort(key=lambda item: (item.repetition, item.point.case.rule, item.number))
    items[:] = [*(item for item in items if not isinstance(item, PointItem)), *kept]


class CaseFile(pytest.File):
    """A case file as its header describes it."""

    def collect(self) -> Iterator[PointItem]:
        run = self.config.stash.get(RUN, None)
        if run is None:
            return
        path = self.path.resolve()
        for error in run.suite.errors:
            if error.path.resolve() == path:
                raise self.CollectError(str(error))
        for case in run.suite.cases:
            if case.path.resolve() == path and run.runner.applies(case):
                for number, point in enumerate(case.points()):
                    if run.repetitions is None:
                        yield PointItem.from_parent(self, name=point.id, point=point, number=number, repetition=0)
                    for repetition in range(1, (run.repetitions or 0) + 1):
                        name = f"{point.id}#{repetition}"
                        yield PointItem.from_parent(self, name=name, point=point, number=number, repetition=repetition)


class NotConforming(Exception):
    """Carries a bad result from runtest to the report; never seen by users."""


class PointItem(pytest.Item):
    """One point, or one repetition of it in a soak (counted from 1). `result` is its entry in the report once it has
    run, `number` its place in the case's matrix."""

    def __init__(self, *, point: header.Point, number: int, repetition: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.point = point
        self.number = number
        self.repetition = repetition
        self.result: Result | None = None

    def runtest(self) -> None:
        run = self.config.stash[RUN]
        try:
            delays = soak.repetition(run.seed, self.repetition) if self.repetition else None
            result = run.runner.run(self.point, soak=delays)
        except Exception:
            # A point must not be missing from the report because the judge stumbled over it.
            result = run.runner.broken(self.point, traceback.format_exc())
        entry = next((entry for entry in run.expected if entry.matches(self.point)), None)
        expectations.apply(result, entry)
        self.result = result
        self.user_properties += [("rule", self.point.case.rule), ("outcome", label(result))]
        if result["outcome"] == Outcome.UNSUPPORTED and not run.certify:
            pytest.skip(_unsupported(result))
        if result["outcome"] == Outcome.UPSTREAM:
            pytest.skip(_upstream(result))
        if result["outcome"] != Outcome.PASS:
            raise NotConforming

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        if isinstance(excinfo.value, NotConforming) and self.result is not None:
            return plain(explain(self.result))
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.point.case.line - 1, self.name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    made = yield
    if not isinstance(item, PointItem) or call.when != "call" or item.result is None:
        return made
    result = item.result
    if result["outcome"] == Outcome.XFAIL and made.failed:
        expected = result["expected"]
        assert expected is not None
        made.outcome = "skipped"
        made.wasxfail = f"{expected['outcome']}: {expected['reason']} ({expected['file']}:{expected['line']})"
    elif made.skipped:
        path, line, _ = item.reportinfo()
        why = _upstream(result) if result["outcome"] == Outcome.UPSTREAM else _unsupported(result)
        made.longrepr = (str(path), line + 1, f"Skipped: {why}")
    # As text: it crosses from an xdist worker to the controller, which takes few types, and no lone surrogates.
    made.conformance = json.dumps(result)  # type: ignore[attr-defined]
    made.conformance_label = label(result)  # type: ignore[attr-defined]
    made.conformance_repetition = item.repetition  # type: ignore[attr-defined]
    return made


def _upstream(result: Result) -> str:
    failure = result["control"] and result["control"]["failure"]
    assert failure is not None
    return plain(f"upstream: without torch_npu as well, {failure['message']}")


def _unsupported(result: Result) -> str:
    return plain(f"unsupported: {result['reason']}")


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    shown = getattr(report, "conformance_label", None)
    if shown == Outcome.UPSTREAM:
        return "upstream", "u", "UPSTREAM"
    if shown is None or not report.failed:
        return None
    return "failed", LETTERS.get(shown.partition("(")[0], "F"), shown.upper()


class _Gatherer:
    """Takes the results as they come in, and ends the workers; lives in the process that writes the report."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._run.selected = len({item.point.id for item in session.items if isinstance(item, PointItem)})

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:  # noqa: ARG002 - by name
        # The controller of xdist collects nothing; its workers all collect the same.
        self._run.selected = len(ids) // (self._run.repetitions or 1)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        text = getattr(report, "conformance", None)
        if text is not None:
            result = json.loads(text)
            self._keep(result, report.conformance_repetition)  # type: ignore[attr-defined]
        elif report.failed:
            # Something else than the case failed: a fixture of a conftest, or a worker of xdist that died.
            name, _, repetition = report.nodeid.partition("#")
            for point in (point for case in self._run.suite.cases for point in case.points()):
                if name.endswith(f"::{point.id}"):
                    self._keep(self._run.runner.broken(point, str(report.longrepr)), int(repetition or 0))

    def _keep(self, result: Result, repetition: int) -> None:
        self._run.results.setdefault(result["id"], {})[repetition] = result

    def pytest_keyboard_interrupt(self) -> None:
        # Workers ignore Ctrl-C. Left alone they would wait for their cases until xdist kills them, and then nobody
        # would end what those cases have started. Without xdist no child is left by now.
        for worker in psutil.Process().children():
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.terminate()


class _Interrupt:
    """The handler of what ends a run: the first signal does, a later one waits until the report is written."""

    def __init__(self) -> None:
        self._begun = False

    def __call__(self, *_: object) -> None:
        if self._begun:
            return
        self._begun = True
        raise KeyboardInterrupt


def pytest_sessionstart(session: pytest.Session) -> None:
    run = session.config.stash.get(RUN, None)
    if run is not None and _writes(session.config):
        session.config.pluginmanager.register(_Gatherer(run), "conformance-gatherer")


# After junitxml, whose file the page links, and xdist, which ends the workers; before the terminal shows the table.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Write the report of what is known, also when the run was interrupted."""
    config = session.config
    run = config.stash.get(RUN, None)
    if run is None or not _writes(config):
        return (yield)
    try:
        answer = yield
    except OSError as error:  # of junitxml: the disk is full
        answer = None
        _fails(session, run, error)
    _write(session, run)
    return answer


def _fails(session: pytest.Session, run: Run, error: OSError) -> None:
    """A report that cannot be written whole is not there at all."""
    report.remove(run.directory)
    Path(session.config.option.xmlpath or run.directory / "junit.xml").unlink(missing_ok=True)
    where = error.filename or run.directory
    run.problem = (
        f"the report cannot be written: {where}: {error.strerror}. Remedy: make room, or name --report-dir DIR"
    )
    session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def _write(session: pytest.Session, run: Run) -> None:
    config = session.config
    installed, device = run.runner.installed, run.runner.device
    meta: report.Meta = {
        "suite": {
            "version": __version__,
            "started": run.started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - run.clock, 1),
            "command": shlex.join(["pytest", *config.invocation_params.args]),
            "selected": run.selected,
        },
        "subject": {
            "name": installed.subject.name,
            "release": installed.release,
            "torch": installed.torch,
            "torch_npu": installed.torch_npu,
            "python": _python(),
        },
        "device": {"name": device.name, "detail": device.detail},
    }
    try:
        run.written = report.write(run.merged(), meta, run.directory)
    except report.InvalidReport as error:
        run.problem = str(error)
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
    except OSError as error:
        _fails(session, run, error)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    run = config.stash.get(RUN, None)
    if run is None:
        return
    if run.problem:
        terminalreporter.section("conformance", red=True)
        terminalreporter.write_line(run.problem)
    elif run.written:
        terminalreporter.section("conformance")
        terminalreporter.write(report.table(report.load(run.written.json), color=terminalreporter.hasmarkup))
        terminalreporter.write_line(f"report: {run.runner.relative(run.written.html)}, report.json beside it")


def _repetitions(word: str) -> int:
    number = int(word) if word.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of repetitions; write e.g. --soak 50")
    return number


def _expected(
    config: pytest.Config, suite: catalogue.Suite, runner: Runner, subject: str
) -> tuple[str, list[expectations.Expectation]]:
    """The expectations file of a subject at the installed release, as it is shown, and its entries."""
    directory = _below_root(config, config.getini("conformance_expectations"))
    file = directory / subject / f"{runner.installed.release}.toml"
    shown = runner.relative(file)
    try:
        # A file with a bad header is an error of its own; it must not make entries of its rule look stale as well.
        return shown, [] if suite.errors else expectations.read(file, suite.cases, shown)
    except expectations.ExpectationError as error:
        raise pytest.UsageError(str(error)) from None


def _writes(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput") and not config.option.collectonly


def _cases(config: pytest.Config) -> Path:
    return _below_root(config, config.getini("conformance_cases"))


def _below_root(config: pytest.Config, name: str) -> Path:
    return (config.rootpath / name).resolve()


def _is_case(config: pytest.Config, path: Path) -> bool:
    return header.is_case_file(path) and _cases(config) in path.resolve().parents


def _arguments(config: pytest.Config) -> list[Path]:
    """The paths that pytest was asked to collect."""
    names = [argument.partition("::")[0] for argument in config.args]
    return [Path(os.path.normpath(config.invocation_params.dir / name)).resolve() for name in names]


def _concerns_cases(config: pytest.Config) -> bool:
    return any(_overlap(path, _cases(config)) for path in _arguments(config))


def _missing(config: pytest.Config) -> list[str]:
    return [f"{path}: no such file or directory" for path in _arguments(config) if not path.exists()]


def _prepare(directory: Path) -> contextlib.ExitStack:
    """Finds out before the first case, and not after the last, that the report cannot be written, and keeps other runs
    out of the directory until what is returned is closed."""
    lock = contextlib.ExitStack()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(1 << 16))
        # On the directory itself: nothing is left behind, and a killed run keeps nobody out.
        opened = os.open(directory, os.O_RDONLY)
        lock.callback(os.close, opened)
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whatever becomes of this run, what an earlier one wrote must not pass for its report.
        report.remove(directory)
        (directory / "junit.xml").unlink(missing_ok=True)
    except OSError as error:
        lock.close()
        why = "another run is writing there" if isinstance(error, BlockingIOError) else error.strerror
        raise pytest.UsageError(
            f"the report cannot be written to {directory}: {why}. Remedy: name another with --report-dir DIR"
        ) from None
    return lock


def _overlap(path: Path, directory: Path) -> bool:
    return path == directory or directory in path.parents or path in directory.parents


def _named(config: pytest.Config, case: Path) -> bool:
    """Whether the arguments include the case, or nothing of the suite at all (`pytest --dryrun`)."""
    inside = [path for path in _arguments(config) if _overlap(path, _cases(config))]
    return not inside or any(path == case.resolve() or path in case.resolve().parents for path in inside)


def _refuse_partial(config: pytest.Config, directory: Path) -> None:
    for name in PARTIAL:
        if getattr(config.option, name, None):
            flag = {"conformance_rules": "--rule", "keyword": "-k", "markexpr": "-m"}.get(
                name, f"--{name.replace('_', '-')}"
            )
            raise pytest.UsageError(f"--certify judges the whole suite; run it without {flag}")
    if not any(path == directory or path in directory.parents for path in _arguments(config)):
        raise pytest.UsageError(f"--certify judges the whole suite; name its directory: pytest {directory}")


def _python() -> str:
    return "{}.{}.{}".format(*sys.version_info)
