"""Each fake package gets the outcome that it deserves, and none of them a pass that it does not."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from fakes import CASES, Judge, Run

from harness import header, process, scratch
from harness.outcomes import INSIDE

LAZY = "import/lazy/none.py"


@pytest.fixture
def hurried() -> Any:
    """The lazy case with a short timeout, for fakes that hang for ever anyway."""
    return dataclasses.replace(header.read(CASES / LAZY), timeout=3.0)


def assert_nothing_left() -> None:
    assert psutil.Process().children(recursive=True) == []


def test_an_honest_package_passes(judge: Judge) -> None:
    result = judge("honest", LAZY)
    assert result["outcome"] == "pass", result
    assert result["checks"] > 2
    assert result["cpu_seconds"] > 0
    assert result["failure"] is None


@pytest.mark.parametrize(
    "fake", ["eager", "eager_in_try", "purges", "executes_file", "executes_text", "replaces_judge"]
)
def test_an_eager_package_fails_and_is_named_as_importer(judge: Judge, fake: str) -> None:
    result = judge(fake, LAZY)
    assert result["outcome"] == "fail", result
    assert result["failure"]["message"] == "torch._dynamo was loaded"
    assert f"{fake}/torch_npu/__init__.py:" in result["failure"]["import_stack"][-1]
    assert "none.py:" in result["failure"]["import_stack"][0]
    assert not any(line.startswith(INSIDE) for line in result["failure"]["import_stack"])


EVIDENCEES = ("table", "record", "all_evidence", "libraries", "calls")


@pytest.mark.parametrize(
    ("fake", "seen_by"),
    [
        ("honest", set()),
        ("eager", {"table", "record", "all_evidence"}),
        ("plants_module", {"table", "all_evidence"}),
        ("purges", {"record", "all_evidence"}),
        ("executes_file", {"record", "all_evidence"}),
        ("executes_text", {"all_evidence"}),
        ("maps_library", {"libraries"}),
        ("calls_device", {"calls"}),
    ],
)
def test_no_evidence_is_superfluous(judge: Judge, fake: str, seen_by: set[str]) -> None:
    outcomes = {name: judge(fake, "import/evidence/each.py", kind=name)["outcome"] for name in EVIDENCEES}
    assert outcomes == {name: "fail" if name in seen_by else "pass" for name in EVIDENCEES}


@pytest.mark.parametrize(
    ("fake", "text"), [("maps_library", "libopapi.so"), ("calls_device", "aclrtMalloc x1, aclrtSetDevice x1")]
)
def test_a_touched_device_is_seen(judge: Judge, fake: str, text: str) -> None:
    result = judge(fake, LAZY)
    assert result["outcome"] == "fail"
    assert text in result["failure"]["found"]


@pytest.mark.parametrize("fake", ["swallows", "replaces_dumps"])
def test_a_swallowed_check_still_fails(judge: Judge, fake: str) -> None:
    result = judge(fake, "import/swallowed/anyhow.py")
    assert result["outcome"] == "fail"
    assert result["failure"]["message"] == "torch_npu is called torch"
    assert result["checks"] == 2


@pytest.mark.parametrize(
    ("ends", "outcome"), [("", "pass"), ("sys.modules.pop('torch_npu')", "harness-error")], ids=["stays", "vanishes"]
)
def test_a_pass_needs_the_package_that_the_case_imports(run: Run, ends: str, outcome: str) -> None:
    result = run(f"import sys\n\nimport torch_npu\n\nprobe.check(True, 'it holds')\n{ends}")
    assert result["outcome"] == outcome
    if outcome == "harness-error":
        assert "the case imports torch_npu, and at its end there is none" in result["reason"]


def test_a_check_that_cannot_be_told_is_no_pass(judge: Judge) -> None:
    result = judge("shuts_socket", "import/swallowed/anyhow.py")
    assert result["outcome"] == "exit"
    assert result["checks"] == 1


FULL_DISK = """
import resource
import signal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def child():
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        probe.check(False, "it fails")
    except Exception:  # a subject that swallows everything
        pass
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)

probe.check(True, "something holds")
probe.forked(child)
"""


def test_a_check_that_a_forked_child_cannot_tell_is_no_pass(run: Run) -> None:
    result = run(FULL_DISK)
    assert result["outcome"] == "harness-error"
    assert "child made 1 checks in the forked child; 0 have arrived" in result["reason"]


@pytest.mark.parametrize(("fake", "outcome"), [("honest", "pass"), ("races", "fail")])
def test_a_race_is_forced(judge: Judge, fake: str, outcome: str) -> None:
    assert judge(fake, "races/setup/once.py")["outcome"] == outcome


@pytest.mark.parametrize(
    ("fake", "function"),
    [("hangs", "wait_for_nobody"), ("hangs_in_read", "read_from_nobody"), ("hangs_with_gil", "sleep_in_c")],
)
def test_a_hang_is_ended_and_shows_its_stack(judge: Judge, hurried: header.Case, fake: str, function: str) -> None:
    result = judge(fake, LAZY, case=hurried)
    assert result["outcome"] == "timeout"
    assert "within the case" in result["failure"]["message"]
    assert function in result["stack_dump"]
    assert_nothing_left()


def test_a_hang_that_ignores_signals_is_ended(
    judge: Judge, hurried: header.Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "ABORT_GRACE", 0.5)
    result = judge("hangs_deaf", LAZY, case=hurried)
    assert (result["outcome"], result["signal"]) == ("timeout", "SIGKILL")
    assert_nothing_left()


def test_a_hang_at_shutdown_is_a_timeout_that_says_so(judge: Judge, hurried: header.Case) -> None:
    result = judge("hangs_at_exit", LAZY, case=hurried)
    assert result["outcome"] == "timeout"
    assert "shut down" in result["failure"]["message"]


@pytest.mark.parametrize(
    ("fake", "name", "where", "frame"),
    [
        ("crashes", "SIGSEGV", "the case ran", "read_null"),
        ("crashes_at_exit", "SIGSEGV", "shut down", None),
        ("kills_itself", "SIGKILL", "the case ran", None),
    ],
)
def test_a_crash_names_its_signal(judge: Judge, fake: str, name: str, where: str, frame: str | None) -> None:
    result = judge(fake, LAZY)
    assert (result["outcome"], result["signal"], result["exit_code"]) == ("crash", name, None)
    assert where in result["failure"]["message"]
    if frame:
        assert frame in result["stack_dump"]


def test_a_crash_leaves_no_core_file(judge: Judge, tmp_path: Path) -> None:
    before = set(Path().iterdir())
    judge("crashes", LAZY)
    assert set(Path().iterdir()) == before
    assert not list(tmp_path.rglob("core*"))


@pytest.mark.parametrize(
    ("fake", "code", "text"),
    [
        ("exits_at_exit", 3, "shut down"),
        ("exits_politely", 0, "SystemExit(0)"),
        ("exits_hard", 0, "before the case's last line"),
        ("closes_files", None, "before the case's last line"),
    ],
)
def test_an_early_exit_is_no_pass(judge: Judge, fake: str, code: int | None, text: str) -> None:
    result = judge(fake, LAZY)
    assert result["outcome"] == "exit"
    assert text in result["failure"]["message"]
    if code is not None:
        assert result["exit_code"] == code


@pytest.mark.parametrize(
    ("fake", "name"), [("leaves_daemon", "none.py"), ("leaves_clean_daemon", "import time; time.sleep(3600)")]
)
def test_a_daemon_is_found_and_killed(judge: Judge, monkeypatch: pytest.MonkeyPatch, fake: str, name: str) -> None:
    monkeypatch.setattr(process, "LEAK_GRACE", 0.2)
    result = judge(fake, LAZY)
    assert result["outcome"] == "leak"
    assert len(result["leaked"]) == 1
    number, _, command = result["leaked"][0].partition(": ")
    assert name in command
    assert not psutil.pid_exists(int(number))
    assert_nothing_left()


@pytest.mark.parametrize("fake", ["leaves_helper", "leaves_zombie"])
def test_a_helper_on_its_way_out_is_no_leak(judge: Judge, fake: str) -> None:
    result = judge(fake, LAZY)
    assert (result["outcome"], result["leaked"]) == ("pass", [])
    assert_nothing_left()


def test_a_flood_is_cut_in_the_middle(judge: Judge) -> None:
    result = judge("floods", LAZY)
    assert result["outcome"] == "pass"
    for stream in ("stdout", "stderr"):
        lines = result[stream].splitlines()
        assert lines[0].startswith("[10000")
        assert (lines[1], lines[-1]) == ("first line", "last line")
        assert len(result[stream]) < 70_000


def test_an_endless_flood_is_stopped(judge: Judge) -> None:
    result = judge("floods_for_ever", LAZY, size_limit=1 << 20)
    assert result["outcome"] == "fail"
    assert "more than 1 MiB" in result["failure"]["message"]
    assert_nothing_left()


@pytest.mark.parametrize(
    ("fake", "text"),
    [
        ("scribbles", "record 1 is not the next one that the probe has sent: 'hello'"),
        ("forges_end", 'record 1 is not the next one that the probe has sent: \'{"kind": "check"'),
        ("lies_about_version", "loaded torch_npu 2.98.0"),
        ("lies_about_file", "loaded torch_npu from /elsewhere/torch_npu/__init__.py"),
    ],
)
def test_what_cannot_be_believed_is_a_harness_error(judge: Judge, fake: str, text: str) -> None:
    result = judge(fake, LAZY)
    assert result["outcome"] == "harness-error"
    assert text in result["reason"]


@pytest.mark.parametrize(
    ("how", "outcome", "text"),
    [
        ("well", "pass", None),
        ("fails", "fail", "the list differs"),
        ("raises", "fail", "unexpected RuntimeError: out of the blue"),
        ("no_check", "harness-error", "without a single check"),
        ("forks", "pass", None),
        ("misuses", "harness-error", "no parameter 'nonesuch' in this case's matrix; it has: how"),
        ("unsupported", "unsupported", "no such thing here"),
        ("unsupported_swallowed", "unsupported", "no such thing here"),
        ("notes", "pass", None),
    ],
)
def test_ways_to_end_a_case(judge: Judge, how: str, outcome: str, text: str | None) -> None:
    result = judge("honest", "behaviour/point/ends.py", how=how)
    assert result["outcome"] == outcome, result
    if text:
        assert text in (result["reason"] or result["failure"]["message"])
    if how == "forks":
        assert (result["notes"], result["checks"]) == ({"who": "parent"}, 1)
    if how == "notes":
        assert result["notes"] == {"modules": 12}
    if how == "fails":
        assert (result["failure"]["expected"], result["failure"]["found"]) == ("[1, 3]", "[1, 2]")
        assert "ends.py:" in result["failure"]["traceback"][-1]


def test_what_is_missing_is_said_and_nothing_runs(judge: Judge) -> None:
    result = judge("honest", "behaviour/point/needs.py")
    assert result["outcome"] == "unsupported"
    assert result["reason"] == "needs devices>=3: faux has 2; needs kernels: device faux has none"
    assert (result["exit_code"], result["seconds"], result["checks"]) == (None, 0, 0)


def test_a_case_sees_nothing_of_the_shell(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSTARTUP", "/nonesuch")
    monkeypatch.setenv("ASCEND_GLOBAL_LOG_LEVEL", "0")
    result = judge("honest", "behaviour/point/imported.py")
    assert result["outcome"] == "pass", result


def test_no_directory_is_left(judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Path] = []
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(scratch, "place", lambda: seen.append(place) or place)
    judge("honest", LAZY)
    assert seen
    assert list(place.iterdir()) == []


def test_signals_are_as_in_a_shell(judge: Judge) -> None:
    # xdist's workers ignore Ctrl-C, and a program inherits what is ignored.
    earlier = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        assert judge("honest", "behaviour/point/ends.py", how="takes_signals")["outcome"] == "pass"
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
