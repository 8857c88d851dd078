"""The yardstick of the operator library, without torch: judged by a worker that answers as it is told."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from deadlines import HANG

from simnpu.toolchain import surroundings
from tools.simnpu import opcoverage
from tools.simnpu.opcoverage import Key, Records, Summary, Worker, explanation, missing_name, verdict

TOOLS = Path(opcoverage.__file__).parent

# What a fake operator does is its name.
FAKE = f"""
import os, signal, sys, time
sys.path.insert(0, {str(TOOLS)!r})
import opcoverage_worker

def judge(task, at):
    at("sample 3")
    name = task["op"]
    if name == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "hangs":
        signal.pause()
    if name == "kills the worker":
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    if name == "raises":
        raise ValueError("what the operator says")
    print("noise that is no record")
    return {{"samples": 1, "passed": 1, "random": False, "on_cpu": [], "errors": [], "wrong": [], "differing": 0}}

opcoverage_worker.serve(judge, {{"operators": {{}}}})
"""


def record(op: str = "add", dtype: str = "float32", direction: str = "forward", **facts) -> dict:
    nothing = {
        "samples": 2,
        "passed": 2,
        "refused": 0,
        "random": False,
        "on_cpu": [],
        "errors": [],
        "wrong": [],
        "differing": 0,
    }
    return {"op": op, "dtype": dtype, "direction": direction} | nothing | facts


@pytest.fixture
def worker(tmp_path: Path):
    script = tmp_path / "worker.py"
    script.write_text(textwrap.dedent(FAKE))
    worker = Worker([sys.executable, str(script)], {})
    yield worker
    worker.stop()


def ask(worker: Worker, op: str, timeout: float = 60) -> dict:
    return worker.ask({"op": op, "timeout": timeout})


def test_a_judgement_comes_back_whatever_the_operator_prints(worker: Worker):
    assert ask(worker, "good")["passed"] == 1


def test_a_crash_is_a_record_and_the_next_operator_is_judged(worker: Worker):
    answer = ask(worker, "dies")
    assert answer["died"] == "SIGSEGV in sample 3"
    assert verdict(record() | answer) == "crash"
    assert ask(worker, "good")["passed"] == 1


def test_an_operator_that_hangs_is_stopped_and_named(worker: Worker):
    answer = ask(worker, "hangs", timeout=0.3)
    assert verdict(record() | answer) == "timeout"
    assert ask(worker, "good")["passed"] == 1


def test_a_judge_that_fails_says_why(worker: Worker):
    answer = ask(worker, "raises")
    assert answer["died"] == "exit 70 in sample 3"
    assert any("what the operator says" in line for line in answer["output"])


def test_a_worker_that_is_killed_is_started_again(worker: Worker):
    assert ask(worker, "kills the worker")["died"] == "the worker ended with -9"
    assert ask(worker, "good")["passed"] == 1


def test_every_task_of_a_run_is_recorded(worker: Worker, tmp_path: Path):
    records = Records(tmp_path / "records.jsonl", "build 1")
    wanted = [Key(op, "float32", "forward") for op in ("good", "dies", "good too")]
    lines: list[str] = []
    assert opcoverage.run(wanted, [worker], records, {"timeout": 60}, lines.append)
    assert [line.split(": ")[1].split(" - ")[0] for line in lines] == ["passing", "crash", "passing"]
    assert set(Records(tmp_path / "records.jsonl", "build 1").by_key) == set(wanted)


def test_records_are_of_one_build_and_survive_a_torn_line(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    old, new = Records(path, "build 1"), Records(path, "build 2")
    passed, failed = Key("add", "float32", "forward"), Key("sub", "float32", "forward")
    old.add(passed, record("add"))
    old.add(failed, record("sub", wrong=["sample 0: 1, expected 2"], differing=1))
    new.add(Key("mul", "float32", "forward"), record("mul"))
    with path.open("a") as file:
        file.write('{"build": "build 2", "op": "di')
    assert [key.op for key in Records(path, "build 2").by_key] == ["mul"]
    assert sorted(key.op for key in Records(path, "build 2", trust=True).by_key) == ["add", "mul"]
    assert not Records(path, "build 2", fresh=True).by_key


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ("RuntimeError: aclnnX1 or aclnnX1GetWorkspaceSize not in libopapi.so, or libopapi.so not found.", "aclnnX1"),
        ("aclopCompileAndExecute: operator Iou of the legacy path is not simulated", "operator Iou of the legacy path"),
        ("Could not run 'aten::foo.out' with arguments from the 'npu' backend", "aten::foo.out"),
        ("aclnnPool: rounding mode 7 is not simulated", "aclnnPool: rounding mode 7 is not simulated"),
        ("\"tril\" not implemented for 'Half'", "\"tril\" not implemented for 'Half'"),
        ("RuntimeError: Only A is supported.\n[ERROR] now ERR01007 OPS feature not supported", "Only A is supported."),
        ("RuntimeError: ACL stream synchronize failed, error code:361001", None),
    ],
)
def test_errors_name_what_is_missing(error: str, name: str | None):
    assert missing_name(error) == name


def test_the_worst_sample_decides():
    missing, unclear = "Failed to find function aclnnA", "something broke"
    assert verdict(record()) == "passing"
    assert verdict(record(samples=0)) == "not counted"
    assert verdict(record(on_cpu=["aten::a"])) == "on CPU by torch_npu"
    assert verdict(record(on_cpu=["aten::a"], errors=[missing])) == "unsupported"
    untaken = "aclnnMm: argument 0 (self) has type Long, which a device does not take; it takes Float, Half"
    assert verdict(record(errors=[untaken])) == "refused"
    assert verdict(record(errors=[untaken, missing])) == "unsupported"
    assert verdict(record(errors=[missing, unclear])) == "error"
    assert verdict(record(errors=[missing, unclear], wrong=["sample 1: 1, expected 2"])) == "wrong"


def test_a_known_loss_explains_only_its_own_failures():
    known = "sample 1 approximate='tanh': not close"
    gelu = record("nn.functional.gelu", wrong=[known], differing=1)
    assert verdict(gelu) == "lost by torch_npu"
    assert "approximate" in explanation(gelu)
    assert verdict(gelu | {"wrong": [known, "sample 0 approximate='none': not close"]}) == "wrong"
    assert verdict(gelu | {"op": "nn.functional.relu"}) == "wrong"


def test_the_page_groups_by_what_is_missing():
    page = Summary(
        [
            record("add"),
            record("sub", errors=["Failed to find function aclnnSub"]),
            record("rsub", errors=["Failed to find function aclnnSub"]),
            record("sub", direction="backward", errors=["Failed to find function aclnnSub"]),
            record("mul", dtype="int64", wrong=["sample 0: a | b"], differing=1),
            record("div", dtype="bool", samples=0),
        ]
    ).markdown("build 1", "tools/simnpu/opcoverage.py")
    assert "| float32 | forward | 3 | 1 | 2 | 0 |" in page
    assert "| bool | forward | 0 | 0 | 0 | 0 |" in page
    assert "| aclnnSub | rsub, sub |" in page
    assert "| mul | int64 | forward | 1 of 2 samples; sample 0: a \\| b |" in page


def test_help_teaches_and_an_unknown_dtype_is_refused():
    command = [sys.executable, str(TOOLS / "opcoverage.py")]
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True, timeout=HANG)
    assert "--trust-passing" in shown.stdout
    assert "example:" in shown.stdout
    refused = subprocess.run([*command, "--dtype", "int3"], capture_output=True, text=True, check=False, timeout=HANG)
    assert refused.returncode == 2
    assert "invalid choice" in refused.stderr


def test_a_run_that_only_compiles_is_refused_at_once_where_nothing_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(surroundings, "missing", lambda: "no LLVM is installed; install it")
    monkeypatch.setattr(opcoverage, "Worker", lambda *_: pytest.fail("a worker was started"))
    with pytest.raises(SystemExit, match="nothing can be compiled: no LLVM is installed; install it"):
        opcoverage.main(["--direction", "compiled", "--records", str(tmp_path / "records.jsonl")])


def test_the_records_are_json_lines(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    Records(path, "build 1").add(Key("add", "bool", "forward"), record("add", "bool"))
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["build"] == "build 1"
