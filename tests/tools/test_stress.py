"""The verdicts of tools/simnpu/stress.py: on figures made up here, on programs told to misbehave, on the simulator."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from tools.simnpu import stress
from tools.simnpu.stress import LEAST, MEBI, RESIDENT, Sample, Worker, findings, growth, watch


def series(name: str, values: list[float], **others: float) -> list[Sample]:
    """Samples in which one figure goes so and everything else stays."""
    steady = {"allocated": 0.0, RESIDENT: 400.0 * MEBI, "file descriptors": 14.0, "threads": 140.0} | others
    return [Sample(number, float(number), steady | {name: value}) for number, value in enumerate(values)]


NOISE = [0, 3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 1, 4, 2, 6, 3]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("threads", [140 + number for number in range(20)]),
        ("file descriptors", [14 + number // 4 for number in range(20)]),
        ("live streams", [132 + number // 3 for number in range(20)]),
        ("mapped regions", [770 + 5 * number for number in range(20)]),
        (RESIDENT, [(400 + 2 * number + NOISE[number % 16] / 4) * MEBI for number in range(20)]),
        ("device bytes", [number // 4 for number in range(20)]),
    ],
)
def test_what_rises_all_the_time_is_growth(name: str, values: list[float]):
    (text,) = findings(series(name, values))
    assert text.startswith(f"{name} grow: ")
    assert "per round" in text


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("threads", [140.0] * 20),
        ("threads", [140.0] * 12 + [141.0] * 8),  # a step, after which nothing happens
        ("threads", [20 + 24 * number for number in range(5)] + [140.0] * 15),  # the warm-up
        ("threads", [140 - number for number in range(20)]),
        ("live events", [float(NOISE[number % 16]) for number in range(20)]),
        (RESIDENT, [(400 + NOISE[number % 16]) * MEBI for number in range(20)]),
        (RESIDENT, [(400 + number / 4) * MEBI for number in range(20)]),  # within what is allowed
    ],
)
def test_a_plateau_a_step_noise_and_the_warm_up_are_none(name: str, values: list[float]):
    assert findings(series(name, values)) == []


def test_tensors_that_stay_are_told_at_once():
    (text,) = findings(series("allocated", [0.0] * 11 + [512.0] + [0.0] * 8))
    assert text.startswith("512 bytes of tensors are still allocated after round 11")


def test_too_few_samples_give_no_verdict_of_health():
    (text,) = findings(series("threads", [140.0] * LEAST))
    assert "too few to tell growth" in text


def test_the_fitted_line_is_that_of_least_squares():
    went = growth(series("threads", [1.0, 2.0, 4.0, 5.0, 5.0, 7.0, 8.0, 8.0]), "threads")
    assert went.per_round == pytest.approx(44 / 42)
    assert went.fitted == pytest.approx(7 * 44 / 42)
    assert went.medians == (1.5, 4.5, 6.0, 8.0)


# What a fake process does is its argument.
FAKE = """
import argparse, faulthandler, json, os, signal, sys
faulthandler.register(signal.SIGUSR1, all_threads=True)
parser = argparse.ArgumentParser()
parser.add_argument("what")
parser.add_argument("--report-fd", type=int)
options = parser.parse_args()
report = os.fdopen(options.report_fd, "w")

def tell(**what):
    print(json.dumps(what), file=report, flush=True)

def wait_for_ever():
    signal.pause()

print("noise")
tell(event="round", rounds=1, checks=10, seconds=0.5)
if options.what == "crashes":
    print("last words", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
if options.what == "leaves":
    sys.exit("what it says")
if options.what == "stops early":
    sys.exit(0)
if options.what == "fails":
    tell(event="failed", text="compute, thread 1: AssertionError")
    wait_for_ever()
if options.what == "hangs":
    wait_for_ever()
if options.what == "interrupts":
    os.kill(os.getppid(), signal.SIGINT)
    wait_for_ever()
values = {"allocated": 0, "resident bytes": 4096, "file descriptors": 4, "threads": 1, "mapped regions": 10}
for number in range(2, 22):
    tell(event="sample", rounds=number, checks=10 * number, seconds=number, values=values)
tell(event="end", rounds=21, checks=210, seconds=21, ran={"compute": 210}, calls=5)
"""


def fake(what: str, tmp_path: Path) -> Worker:
    program = tmp_path / "fake.py"
    program.write_text(FAKE)
    return Worker(what, [sys.executable, str(program), what], dict(os.environ))


def gone(worker: Worker) -> bool:
    return worker.process is not None and worker.process.poll() is not None


@pytest.mark.parametrize(
    ("what", "fragments"),
    [
        ("crashes", ["was ended by SIGSEGV after round 1", "last words"]),
        ("leaves", ["ended with exit code 1 after round 1", "what it says"]),
        ("stops early", ["ended with exit code 0 after round 1"]),
        ("fails", ["compute, thread 1: AssertionError"]),
    ],
)
def test_a_process_that_does_not_end_well_ends_the_run_with_the_cause(
    what: str, fragments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    worker, other = fake(what, tmp_path), fake("hangs", tmp_path)
    assert watch([worker, other])
    (problem,) = stress.verdict([worker, other], whole=True)
    assert problem.startswith(f"{what}: ")
    assert not [fragment for fragment in fragments if fragment not in problem], problem
    assert "1 rounds, 10 checks" in capsys.readouterr().out
    assert gone(worker)
    assert gone(other), "the other process is ended too"


def test_a_process_that_hangs_is_ended_with_its_stacks(tmp_path: Path):
    worker = fake("hangs", tmp_path)
    assert watch([worker], patience=2)
    (problem,) = stress.verdict([worker], whole=True)
    assert "hangs: nothing was heard for 2 s" in problem
    assert "in wait_for_ever" in problem or "no process" in problem, problem
    assert gone(worker)


def test_a_healthy_process_has_no_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    worker = fake("works", tmp_path)
    assert watch([worker])
    assert stress.verdict([worker], whole=True) == []
    shown = capsys.readouterr().out
    assert "works: 21 rounds, 210 checks, 20 samples" in shown
    assert "file descriptors" in shown


def test_ctrl_c_ends_the_processes_and_shows_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    workers = [fake("interrupts", tmp_path)]
    monkeypatch.setattr(stress, "workers_for", lambda _options, _seed: workers)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert stress.main(["--seed", "5"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    shown = capsys.readouterr()
    assert "to repeat: python tools/simnpu/stress.py --seed 5 --minutes 10" in shown.out
    assert "interrupts: " in shown.out
    assert "interrupted: no verdict about growth" in shown.err
    assert gone(workers[0])


def scenarios(tmp_path: Path, body: str) -> list[str]:
    file = tmp_path / "more.py"
    head = "import os, torch\nKEPT = []\ndef stress_more(place):\n"
    file.write_text(head + textwrap.indent(body, "    "))
    return ["--also", str(file), "--only", "stress_more"]


ROUNDS = ["--rounds", "12", "--seed", "1"]


def test_the_simulator_is_healthy(capsys: pytest.CaptureFixture[str]):
    code = stress.main(ROUNDS)
    shown = capsys.readouterr()
    assert code == 0, shown
    assert "no error, no growth" in shown.out
    assert all(f"{name}: 12 rounds" in shown.out for name in ("plain", "expandable"))


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("KEPT.append(os.dup(0))", "file descriptors grow: "),
        ("KEPT.append(bytearray(os.urandom(1 << 20)))", "resident bytes grow: "),
        ("KEPT.append(torch.ones(3, device='npu'))", "bytes of tensors are still allocated after round 1"),
        ("place.check(torch.ones(3, device='npu').sum().item(), 4.0, 'the sum')", "the sum: 3.0 instead of 4.0"),
    ],
)
def test_a_leak_and_a_wrong_number_are_found_on_the_simulator(
    body: str, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    code = stress.main([*ROUNDS, *scenarios(tmp_path, body)])
    shown = capsys.readouterr()
    assert code == 1, shown
    assert f"error: plain: {cause}" in shown.err or cause in shown.err, shown.err
    assert "no error" not in shown.out


def test_an_injected_fault_is_told_by_name(capsys: pytest.CaptureFixture[str]):
    assert stress.main([*ROUNDS, "--only", "streams_made_and_destroyed", "--fault", "aclrtMemsetAsync:20:error"]) == 1
    assert "streams_made_and_destroyed, thread " in capsys.readouterr().err


def test_an_unknown_scenario_is_told_with_those_there_are(capsys: pytest.CaptureFixture[str]):
    assert stress.main([*ROUNDS, "--only", "nothing"]) == 1
    shown = capsys.readouterr().err
    assert "no scenario nothing. There are: compute, " in shown
