"""pytest on cases: what is collected, selected, run, reported and refused."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from _pytest import junitxml
from deadlines import HANG
from fakes import Suite
from xdist.plugin import pytest_xdist_auto_num_workers

from harness import isolation, process, scratch
from harness.__main__ import main
from harness.report import files
from harness.runner import Runner

KNOWN = """
[[expect]]
rule = "import/lazy/none"
outcome = "fail"
reason = "it loads Dynamo"
"""


EXPECTED = {
    "behaviour/point/ends[how=well]": "pass",
    "behaviour/point/ends[how=fails]": "fail",
    "behaviour/point/ends[how=raises]": "fail",
    "behaviour/point/ends[how=no_check]": "harness-error",
    "behaviour/point/ends[how=forks]": "pass",
    "behaviour/point/ends[how=misuses]": "harness-error",
    "behaviour/point/ends[how=unsupported]": "unsupported",
    "behaviour/point/ends[how=unsupported_swallowed]": "unsupported",
    "behaviour/point/ends[how=notes]": "pass",
    "behaviour/point/ends[how=takes_signals]": "pass",
    "behaviour/point/imported": "pass",
    "behaviour/point/needs": "unsupported",
    "import/lazy/none": "xfail",
    "import/swallowed/anyhow": "fail",
    "import/evidence/each[kind=table]": "fail",
    "import/evidence/each[kind=record]": "fail",
    "import/evidence/each[kind=all_evidence]": "fail",
    "import/evidence/each[kind=libraries]": "pass",
    "import/evidence/each[kind=calls]": "pass",
    "races/setup/once": "fail",
}


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["serial", "xdist"])
def test_a_run_reports_every_point(suite: Callable[..., Suite], workers: list[str]) -> None:
    eager = suite("eager")
    eager.expect(KNOWN)
    result = eager.apart("cases", *workers)
    result.assert_outcomes(failed=9, passed=7, skipped=3, xfailed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert eager.outcomes() == EXPECTED
    report = eager.report()
    assert report["suite"]["selected"] == len(EXPECTED)
    assert report["subject"] == {
        "name": "stock",
        "release": "2.99.0",
        "torch": "2.99.0+faux",
        "torch_npu": "2.99.0",
        "python": "{}.{}.{}".format(*sys.version_info),
    }
    assert report["device"] == {"name": "faux", "detail": "faux 1"}
    result.stdout.fnmatch_lines(["conformance *: subject stock, release 2.99.0, from *", "device: faux x2 (faux 1)"])
    junit = (eager.path / "build/conformance/junit.xml").read_text()
    assert 'tests="20"' in junit
    assert 'failures="9"' in junit
    assert len(junit) < 60_000  # the report's entries do not go into it
    assert (eager.path / "build/conformance/report.html").is_file()


REPORTS = ("report.json", "report.html", "report.invalid.json", "junit.xml")


def test_an_earlier_report_goes_before_the_first_case(suite: Callable[..., Suite]) -> None:
    honest = suite()
    directory = honest.path / "build/conformance"
    directory.mkdir(parents=True)
    for name in REPORTS:
        (directory / name).write_text("of an earlier run")
    looks = f"import os\n\nprobe.equal(os.listdir({str(directory)!r}), [], 'what is there of an earlier run')"
    honest.add("looks.py", looks)
    honest.apart("cases/added").assert_outcomes(passed=1)


@pytest.mark.parametrize("full", ["report", "junit"])
def test_a_full_disk_leaves_no_report_and_is_told(
    suite: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    honest = suite()
    directory = honest.path / "build/conformance"

    def no_room(*_: Any, **_options: Any) -> Any:
        (directory / "report.json").write_text("{")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory / "report.json"))

    if full == "report":
        monkeypatch.setattr(files, "_replace", no_room)
    else:
        monkeypatch.setattr(junitxml.LogXML, "pytest_sessionfinish", no_room)
    result = honest.run("cases/import/lazy/none.py")
    result.stdout.fnmatch_lines(["the report cannot be written: */report.json: No space left on device. Remedy: *"])
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    assert not (directory / "junit.xml").exists()
    assert (directory / "report.json").exists() == (full == "junit")


def test_a_run_without_junit(suite: Callable[..., Suite]) -> None:
    honest = suite()
    result = honest.apart("cases", "--rule", "import/lazy", "-p", "no:junitxml")
    result.assert_outcomes(passed=1)
    assert "junit.xml" not in (honest.path / "build/conformance/report.html").read_text()


def test_what_a_case_says_cannot_steer_the_terminal(suite: Callable[..., Suite]) -> None:
    honest = suite()
    evil = "\\x1b[2J\\u202efdp\\u200b"
    case = honest.path / "cases/import/lazy/none.py"
    case.write_text(case.read_text() + f'\nprint("{evil}")\nprobe.check(False, "{evil}")\n')
    shown = honest.apart("cases", "--rule", "import/lazy").stdout.str()
    assert "\ufffdfdp\ufffd" in shown
    assert not {"\x1b", "\u202e", "\u200b"} & set(shown)


def test_a_failure_tells_what_who_and_how_to_repeat(suite: Callable[..., Suite]) -> None:
    result = suite("eager").run("cases", "--rule", "import/lazy")
    result.stdout.fnmatch_lines(
        [
            "fail: torch._dynamo was loaded",
            "rule: *import/lazy/none (must): Importing torch_npu loads no compiler*",
            "expected: *neither torch._dynamo nor a module below it was ever loaded",
            "found: *in sys.modules: torch._dynamo",
            "first imported by, outermost first:",
            "*/cases/import/lazy/none.py:* in <module>",
            "*/fakes/eager/torch_npu/__init__.py:* in <module>",
            "reproduce:",
            "*python -m harness run cases/import/lazy/none.py --subject stock --device faux --subject-path fakes/eager",
        ]
    )


def test_the_command_to_repeat_a_point_repeats_it(
    suite: Callable[..., Suite], capfd: pytest.CaptureFixture[str]
) -> None:
    suite("eager").run("cases", "--rule", "import/evidence/each[kind=record]")
    (rule,) = json.loads(Path("build/conformance/report.json").read_text())["rules"]
    words = shlex.split(rule["points"][0]["reproduce"])
    assert words[:4] == ["python", "-m", "harness", "run"]
    capfd.readouterr()
    assert main(words[3:]) == 1
    assert "fail: who imported Dynamo differs" in capfd.readouterr().out


@pytest.mark.parametrize("extra", [[], ["--doctest-modules"], ["-o", "python_files=*.py"]])
@pytest.mark.parametrize(
    "argument",
    ["cases/behaviour/point/needs.py", "cases/behaviour", "cases/behaviour/point/needs.py::behaviour/point/needs"],
)
def test_pytest_never_imports_a_case(suite: Callable[..., Suite], extra: list[str], argument: str) -> None:
    # The case raises when it is executed.
    result = suite().run(argument, *extra, "--rule", "behaviour/point/needs", "-rs")
    result.assert_outcomes(skipped=1, deselected=11 if argument == "cases/behaviour" else 0)
    result.stdout.fnmatch_lines(["SKIPPED *: unsupported: needs devices>=3: faux has 2; needs kernels: device faux *"])


def test_other_tests_run_as_ever(suite: Callable[..., Suite]) -> None:
    honest = suite()
    honest.pytester.makepyfile(test_other="def test_it():\n    assert True\n")
    result = honest.run("test_other.py", "--subject=nonesuch")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("conformance*")
    assert not (honest.path / "build").exists()


def test_other_tests_run_beside_cases(suite: Callable[..., Suite]) -> None:
    honest = suite()
    honest.pytester.makepyfile(test_other="def test_it():\n    assert True\n")
    honest.run(".", "--rule", "import/lazy").assert_outcomes(passed=2, deselected=19)
    assert honest.outcomes() == {"import/lazy/none": "pass"}


@pytest.mark.parametrize(
    ("prefixes", "count"),
    [
        (["import"], 7),
        (["import/evidence"], 5),
        (["import/lazy/none", "races"], 2),
        (["behaviour/point/ends[how=well]"], 1),
    ],
)
def test_a_prefix_selects_whole_segments(suite: Callable[..., Suite], prefixes: list[str], count: int) -> None:
    result = suite().run("cases", "--collect-only", "-q", *(f"--rule={prefix}" for prefix in prefixes))
    assert len([line for line in result.outlines if "::" in line]) == count


@pytest.mark.parametrize("color", ["yes", "no"])
def test_the_table_has_colours_where_pytest_has(suite: Callable[..., Suite], color: str) -> None:
    result = suite().run("cases", "--rule=import/lazy", f"--color={color}")
    _, found, table = result.stdout.str().partition("conformance ==")
    assert found
    assert ("\x1b" in table.partition("report:")[0]) == (color == "yes")


def test_an_unknown_prefix_is_refused_with_near_ones(suite: Callable[..., Suite]) -> None:
    result = suite().run("cases", "--rule", "import/lasy", "--rule", "imp")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*no rule starts with 'import/lasy'; near: import/lazy*", "*no rule starts with 'imp'*"]
    )


def test_a_dry_run_lists_and_starts_nothing(suite: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "run", None)
    honest = suite()
    result = honest.run("cases", "--dryrun", "--rule", "import", "--device=nonesuch")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "import/lazy/none  must  1 point  cases/import/lazy/none.py",
            "    Importing torch_npu loads*",
            "3 rules, 7 points",
        ]
    )
    assert not (honest.path / "build").exists()


@pytest.mark.parametrize("arguments", [["cases", "-k", "lazy"], ["cases/import/lazy/none.py::import/lazy/none"]])
def test_a_dry_run_refuses_what_it_would_not_heed(suite: Callable[..., Suite], arguments: list[str]) -> None:
    result = suite().run(*arguments, "--dryrun")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --dryrun lists by path and --rule and does not heed *; use --collect-only"])


@pytest.mark.parametrize("more", [[], ["--dryrun"]])
def test_a_path_that_is_not_there_is_refused_and_no_report_replaced(
    suite: Callable[..., Suite], more: list[str]
) -> None:
    honest = suite()
    result = honest.run("cases/import/lasy.py", *more)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *cases/import/lasy.py: no such file or directory"])
    assert not (honest.path / "build").exists()


@pytest.mark.parametrize(("place", "said"), [("taken", "File exists"), ("taken/below", "Not a directory")])
def test_a_report_that_cannot_be_written_is_told_before_the_first_case(
    suite: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch, place: str, said: str
) -> None:
    honest = suite()
    monkeypatch.setattr(process, "run", None)
    (honest.path / "taken").write_text("")
    result = honest.run("cases", "--report-dir", place)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: the report cannot be written to */{place}: {said}. Remedy: *--report-dir DIR"]
    )


def test_collecting_writes_no_report(suite: Callable[..., Suite]) -> None:
    honest = suite()
    assert honest.run("cases", "--collect-only").ret == 0
    assert not (honest.path / "build").exists()


def test_each_point_is_one_process(suite: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    real = subprocess.Popen

    def counting(command: list[str], **options: Any) -> Any:
        started.append(command)
        return real(command, **options)

    monkeypatch.setattr(process.subprocess, "Popen", counting)
    suite().run("cases").assert_outcomes(passed=12, failed=5, skipped=3)
    cases = [command for command in started if "cases" in command[-2] + command[-1]]
    assert len(cases) == 19  # 20 points, of which one needs what is not there
    assert len(started) == 21  # one interpreter was asked for its sys.path, one watches over the run


def test_certification_allows_no_gap(suite: Callable[..., Suite]) -> None:
    honest = suite()
    for name in ("races", "behaviour"):
        shutil.rmtree(honest.path / "cases" / name)
    honest.run("cases", "--certify").assert_outcomes(passed=6, failed=1)  # swallowed/1 fails on every fake
    honest.add("gap.py", 'probe.unsupported("no such thing")')
    result = honest.run("cases", "--certify", "-v")
    result.assert_outcomes(passed=6, failed=2)
    result.stdout.fnmatch_lines(["*added/case/gap UNSUPPORTED*", "unsupported: no such thing"])
    assert honest.outcomes()["added/case/gap"] == "unsupported"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["cases", "--rule", "import"], "run it without --rule"),
        (["cases", "--known", "stock"], "run it without --known"),
        (["cases", "-k", "lazy"], "run it without -k"),
        (["cases", "--deselect", "cases/import/lazy/none.py"], "run it without --deselect"),
        (["cases", "--ignore=cases/import"], "run it without --ignore"),
        (["cases", "-x"], "run it without --maxfail"),
        (["cases/import"], "name its directory"),
        (["test_other.py"], "name its directory"),
    ],
)
def test_certification_refuses_a_part(suite: Callable[..., Suite], arguments: list[str], text: str) -> None:
    honest = suite()
    honest.pytester.makepyfile(test_other="def test_it():\n    assert True\n")
    result = honest.run("--certify", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--certify judges the whole suite; {text}*"])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["serial", "xdist"])
def test_what_a_subject_is_known_to_fail_can_be_judged_alone(suite: Callable[..., Suite], workers: list[str]) -> None:
    eager = suite("eager")
    eager.expect(KNOWN)
    eager.run("cases", "--known", "stock", *workers).assert_outcomes(xfailed=1)
    assert list(eager.outcomes()) == ["import/lazy/none"]
    eager.run("cases", "--known", "stock", "--rule", "behaviour").assert_outcomes()


def test_known_of_a_subject_without_a_list_is_refused(suite: Callable[..., Suite]) -> None:
    result = suite().run("cases", "--known", "reference")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--known reference: nothing is listed in expectations/reference/2.99.0.toml*"])


def test_a_bad_header_fails_the_run(suite: Callable[..., Suite]) -> None:
    honest = suite()
    honest.add("bad.py", "", header="# timeout = 0\n")
    honest.add("inspect.py", "")
    result = honest.run("cases")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        [
            "*cases/added/case/bad.py:5: timeout 0 is not a positive number of seconds*",
            "*cases/added/case/inspect.py:1: run by hand, the case would hide Python's own module*",
        ]
    )


def test_a_stale_expectation_fails_the_run(suite: Callable[..., Suite]) -> None:
    honest = suite()
    honest.expect(KNOWN)
    result = honest.run("cases", "--rule", "import/lazy")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "xpass: it passes; delete expectations/stock/2.99.0.toml:1, which expects fail",
            "XPASS cases/import/lazy/none.py*",
        ]
    )
    assert honest.outcomes() == {"import/lazy/none": "xpass"}


def test_an_expectation_of_another_end_does_not_excuse(suite: Callable[..., Suite]) -> None:
    crashing = suite("crashes")
    crashing.expect(KNOWN)
    result = crashing.run("cases", "--rule", "import/lazy", "-v")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*CRASH(SIGSEGV)*", "listed: *expectations/stock/2.99.0.toml:1 expects another end: fail"]
    )


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["serial", "xdist"])
def test_an_expectation_of_nothing_is_refused(suite: Callable[..., Suite], workers: list[str]) -> None:
    honest = suite()
    honest.expect(KNOWN.replace("lazy/none", "lazy/elsewhere"))
    result = honest.apart("cases", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*expectations/stock/2.99.0.toml:1: there is no rule import/lazy/elsewhere; delete the entry*"]
    )


def test_a_rule_about_another_release_is_left_out(suite: Callable[..., Suite]) -> None:
    honest = suite()
    honest.add("later.py", 'probe.check(True, "x")', header='# releases = ">=3"\n')
    result = honest.run("cases/added", "cases/import/lazy/none.py")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["rules: 8 in cases, 1 of them not about release 2.99.0; *"])


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--subject=nonesuch", "unknown subject 'nonesuch'; known are stock, reference"),
        ("--device=nonesuch", "unknown device 'nonesuch'; known are"),
        ("--subject-path=nonesuch", "--subject-path nonesuch is no directory"),
    ],
)
def test_a_wrong_option_is_one_clear_line(suite: Callable[..., Suite], option: str, text: str) -> None:
    result = suite().run("cases", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{text}*"])


def test_an_interrupted_run_keeps_what_it_knows(suite: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch) -> None:
    honest = suite()
    real = Runner.run

    def interrupted(self: Runner, point: Any, live: bool = False, soak: str | None = None) -> Any:
        if point.id == "behaviour/point/needs":
            raise KeyboardInterrupt
        return real(self, point, live, soak)

    monkeypatch.setattr(Runner, "run", interrupted)
    assert honest.run("cases").ret == pytest.ExitCode.INTERRUPTED
    before = {id for id in EXPECTED if id.startswith("behaviour/") and id != "behaviour/point/needs"}
    assert set(honest.outcomes()) == before
    assert honest.report()["suite"]["selected"] == len(EXPECTED)


HANGING = """
import os, time

if os.fork() == 0:
    os.setsid()
    time.sleep(3600)
with open({fifo!r}, "w") as running:
    running.write(str(os.getpid()))
time.sleep(3600)
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A directory with a name so short that scratch directories are made in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        yield Path(directory)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["serial", "xdist"])
def test_an_interruption_ends_the_case_and_what_it_started(
    suite: Callable[..., Suite],
    monkeypatch: pytest.MonkeyPatch,
    temporary: Path,
    workers: list[str],
    number: signal.Signals,
) -> None:
    honest = suite()
    monkeypatch.setenv("TMPDIR", str(temporary))
    fifo = honest.path / "running"
    os.mkfifo(fifo)
    honest.add("hang.py", HANGING.format(fifo=str(fifo)))
    command = [sys.executable, "-m", "pytest", *honest.options, "cases/added", *workers]
    running = subprocess.Popen(
        command,
        cwd=honest.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A shell starts what it puts in the background with Ctrl-C ignored, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no thread here
    )
    case = psutil.Process(int(fifo.read_text()))  # blocks until the case is under way
    family = [case, *case.children()]
    assert len(family) == 2
    assert len(list(temporary.glob("conformance-*"))) == 1
    running.send_signal(number)
    output, _ = running.communicate(timeout=HANG)
    assert running.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    assert not [process for process in family if process.is_running()]
    assert list(temporary.glob("conformance-*")) == []


@pytest.mark.parametrize("arguments", [["cases/import/lazy/none.py"], []], ids=["cases", "others"])
@pytest.mark.parametrize("named", ["3", None])
def test_automatic_workers_are_one_more_than_elsewhere(
    suite: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch, arguments: list[str], named: str | None
) -> None:
    honest = suite()
    honest.pytester.makepyfile("def test(): pass")
    if named:
        monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", named)
    usual = pytest_xdist_auto_num_workers(honest.pytester.parseconfig("-n", "auto"))
    result = honest.apart("-n", "auto", *(arguments or ["test_automatic_workers_are_one_more_than_elsewhere.py"]))
    count = usual if named or not arguments else usual + 1
    result.stdout.fnmatch_lines([f"created: {count}/{count} workers"])


def test_two_runs_do_not_write_to_one_directory(suite: Callable[..., Suite]) -> None:
    honest = suite()
    fifo = honest.path / "running"
    os.mkfifo(fifo)
    honest.add("hang.py", f"import time\nopen({str(fifo)!r}, 'w').close()\ntime.sleep(3600)")
    command = [sys.executable, "-m", "pytest", *honest.options, "cases/added"]
    running = subprocess.Popen(command, cwd=honest.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    fifo.read_text()
    refused = honest.run("cases/import/lazy/none.py")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(
        ["ERROR: the report cannot be written to *: another run is writing there. Remedy: *--report-dir DIR"]
    )
    assert honest.run("cases/import/lazy/none.py", "--report-dir", "other").ret == pytest.ExitCode.OK
    running.kill()
    running.wait()
    assert honest.run("cases/import/lazy/none.py").ret == pytest.ExitCode.OK  # a run that is killed keeps nobody out


def test_a_killed_run_takes_the_case_along_and_the_next_one_tidies_up(
    suite: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    honest = suite()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    fifo = honest.path / "running"
    os.mkfifo(fifo)
    honest.add("hang.py", f"import os, time\nopen({str(fifo)!r}, 'w').write(str(os.getpid()))\ntime.sleep(3600)")
    command = [sys.executable, "-m", "pytest", *honest.options, "cases/added"]
    running = subprocess.Popen(command, cwd=honest.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    child = psutil.Process(int(fifo.read_text()))
    running.kill()
    running.wait()
    assert psutil.wait_procs([child], timeout=HANG)[0] == [child]
    assert len(list(temporary.glob("conformance-*"))) == 1
    with scratch.Scratch(isolation.FOLDERS) as used:
        scratch.sweep()
        assert list(temporary.glob("conformance-*")) == [used.path]


def test_a_point_that_the_judge_stumbles_over_is_in_the_report(
    suite: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: Any, **_options: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(process, "run", full)
    honest = suite()
    honest.run("cases", "--rule", "import/lazy").assert_outcomes(failed=1)
    assert honest.outcomes() == {"import/lazy/none": "harness-error"}
    assert "OSError: no space left" in honest.report()["rules"][0]["points"][0]["reason"]


def test_a_worker_that_dies_takes_no_point_out_of_the_report(suite: Callable[..., Suite]) -> None:
    honest = suite()
    dying = """
        import os

        def pytest_runtest_setup(item):
            if item.name == "import/lazy/none":
                os._exit(1)
    """
    honest.pytester.makepyfile(dying=dying)
    result = honest.apart("cases/import", "-n", "1", "-p", "dying")
    assert result.ret != 0
    assert honest.outcomes()["import/lazy/none"] == "harness-error"
