"""Makes every call to the simulated runtime fail in turn, and says what torch_npu makes of it: docs/faults.md.

What a program sees when its device misbehaves cannot be tried on a real NPU; here each call fails on request.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("faults_program.py")
DOCUMENT = ROOT / "docs" / "faults.md"
SUMMARY = ROOT / "docs" / "simnpu.md"
SUMMARY_BEGIN = "<!-- written by tools/simnpu/faults.py: begin -->"
SUMMARY_END = "<!-- written by tools/simnpu/faults.py: end -->"
# A hang is told by what the process does, not by the clock alone: a loaded machine may need minutes for seconds' work.
IDLE_SECONDS = 30  # for so long hardly ever a thread wanted a processor
IDLE_SHARE = 0.2  # "hardly ever": threads that poll wake now and then
CPU_SECONDS = 30  # an undisturbed run needs about 4
SECONDS = 900  # whatever it does
LOOK_SECONDS = 0.2
STACK_SECONDS = 10  # for writing the stacks of a hanging process
MARK = "failed on request (SIMNPU_FAULT)"

OUTCOMES = {
    "named": "a Python error that names the call",
    "recovered": "the program goes on and every number is right",
    "unnamed": "a Python error that does not name the call",
    "wrong": "a wrong number, silently",
    "crash": "the process dies from a signal",
    "hang": f"no end: its threads only wait for {IDLE_SECONDS} s, or spend {CPU_SECONDS} s of processor time",
    "unreached": "the call was not made this time",
}
BAD = ("wrong", "crash", "hang")

# What was seen of torch_npu's own making, with the reason: (call, occurrence) -> text. Anything bad that is not listed
# here, or is listed and no longer happens, fails the run.
_PINNED = (
    "torch_npu: giving back pinned memory creates and records an event, and its error leaves a destructor, which ends "
    "the process (std::terminate below TensorImpl's destructor)"
)
_NO_PINNED = "torch_npu: pin_memory() does not look whether it got memory, and copies to address 0"
_NO_COUNT = (
    "torch_npu: is_available() takes an error for no device, as torch's does; device_count() asks the driver, which "
    "knows"
)
KNOWN: dict[tuple[str, str], str] = {
    ("aclrtCreateEventExWithFlag", "1"): _PINNED,
    ("aclrtCreateEventExWithFlag", "*"): _PINNED,
    ("aclrtRecordEvent", "1"): _PINNED,
    ("aclrtRecordEvent", "*"): _PINNED,
    ("aclrtMallocHost", "1"): _NO_PINNED,
    ("aclrtMallocHost", "*"): _NO_PINNED,
    ("aclrtGetDeviceCount", "1"): _NO_COUNT,
    ("aclrtGetDeviceCount", "*"): _NO_COUNT,
    ("aclrtGetSocName", "1"): "torch_npu: takes no name for an empty one",
    ("aclrtGetSocName", "*"): "torch_npu: takes no name for an empty one",
    ("aclrtProcessReport", "*"): (
        "torch_npu: its thread that runs callbacks passes over the error, so the callback that the stream waits for "
        "never runs"
    ),
}
# Which of two threads makes the failing call is a matter of timing: the one ends in an error, the other in a crash.
SOMETIMES = {("aclrtRecordEvent", "1"), ("aclrtRecordEvent", "*")}


@dataclass(frozen=True)
class Fault:
    """One call that fails: the first time, or every time."""

    call: str
    occurrence: str  # "1" or "*"

    @property
    def rule(self) -> str:
        return f"{self.call}:{self.occurrence}:error"


@dataclass(frozen=True)
class Run:
    """How the program ended."""

    returncode: int | None  # None: it did not
    steps: list[tuple[str, object]]
    output: str
    log: str


@dataclass(frozen=True)
class Verdict:
    fault: Fault
    outcome: str
    seen: str


def simulated(log: Path) -> dict[str, str]:
    """The environment for a program on the simulator, built when needed."""
    sys.path.insert(0, str(ROOT))
    import simnpu

    return simnpu.environ() | {"SIMNPU_LOG": str(log), "PYTHONPATH": str(ROOT)}


class Running:
    """The programs under way, so that an interrupted run leaves none behind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    @contextlib.contextmanager
    def start(
        self, command: list[str], environment: dict[str, str], output: IO[bytes]
    ) -> Iterator[subprocess.Popen[bytes]]:
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._processes.add(process)
        try:
            yield process
        finally:
            self._end(process)
            with self._lock:
                self._processes.discard(process)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._processes:
                self._end(process)

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


RUNNING = Running()


def wants_processor(pid: int) -> bool:
    """Whether a thread of the process runs, would run if it could, or waits for a disk."""
    states = []
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # the thread has just ended
            states.append(stat.read_text().rpartition(")")[2].split()[0])
    return any(state in "RD" for state in states)


def processor_seconds(pid: int) -> float:
    """What the process has used so far; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code, or None for a process that hangs; that one writes the stacks of its threads and is ended."""
    start = time.monotonic()
    looks: deque[bool] = deque(maxlen=round(IDLE_SECONDS / LOOK_SECONDS))
    while True:
        try:
            return process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            looks.append(wants_processor(process.pid))
            idle = len(looks) == looks.maxlen and sum(looks) < IDLE_SHARE * len(looks)
            exhausted = processor_seconds(process.pid) > CPU_SECONDS or time.monotonic() - start > SECONDS
            if not idle and not exhausted:
                continue
        process.send_signal(signal.SIGABRT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STACK_SECONDS)
        return None


def run_program(rule: str | None) -> Run:
    """Runs the program in a fresh process, with this fault."""
    with tempfile.TemporaryDirectory(prefix="faults-") as directory:
        report, log = Path(directory) / "report.jsonl", Path(directory) / "calls.log"
        environment = simulated(log) | ({"SIMNPU_FAULT": rule} if rule else {})
        output_path = Path(directory) / "output.txt"
        command = [sys.executable, str(PROGRAM), str(report)]
        with output_path.open("wb") as output, RUNNING.start(command, environment, output) as process:
            returncode = wait_for(process)
        lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
        steps = [tuple(json.loads(line)) for line in lines]
        words = output_path.read_text(encoding="utf-8", errors="replace")
        return Run(returncode, steps, words, log.read_text(encoding="utf-8", errors="replace") if log.exists() else "")


def calls_in(log: str) -> Counter[str]:
    """How often each call was made."""
    return Counter(
        match[1] for match in re.finditer(r" (\w+)\(", "\n".join(line.split("(")[0] + "(" for line in log.splitlines()))
    )


def reached(fault: Fault, run: Run) -> bool:
    """Whether the call was made at all, so that it failed."""
    return calls_in(run.log)[fault.call] > 0


def last_words(output: str, call: str) -> str:
    """The line of the output that tells most: about the call, else the error, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if call in line and MARK not in line] or [
        line for line in lines if re.match(r"\w*(Error|Exception)\b", line)
    ]
    text = (telling or lines or [""])[-1]
    text = re.sub(r"\[?[EW]\d{4} [\d:.]+ +\d* ?", "", text)
    text = re.sub(r"terminate called.*|0x[0-9a-f]+|\(PID:\d+[^)]*\)|\d{4}-\d\d-\d\d[- T][\d:.]+", "", text)
    return text if len(text) <= 140 else text[:137] + "…"


def judge(fault: Fault, run: Run, reference: Run) -> Verdict:
    """Compares a run with the undisturbed one."""
    expected = dict(reference.steps)
    wrong = [name for name, value in run.steps if expected.get(name) != value]
    finished = bool(run.steps) and run.steps[-1][0] == "end"
    at = "" if finished or not run.steps else f"after step {run.steps[-1][0]}: "
    words = last_words(run.output, fault.call)
    if run.returncode is None:
        return Verdict(fault, "hang", f"{at}{words}")
    if wrong:
        values = dict(run.steps)
        return Verdict(fault, "wrong", f"step {wrong[0]}: {values[wrong[0]]} instead of {expected[wrong[0]]}")
    if run.returncode < 0:
        when = "at the end of the process" if finished else at.rstrip(": ")
        return Verdict(fault, "crash", f"{signal.Signals(-run.returncode).name} {when}: {words}")
    if not reached(fault, run):
        return Verdict(fault, "unreached", "")
    if run.returncode == 0 and finished:
        told = MARK in run.output or fault.call in run.output
        return Verdict(fault, "recovered", "with a warning" if told else "")
    trace = run.output[run.output.rfind("Traceback (most recent call last)") :]
    named = "Traceback" in trace and fault.call.lower() in trace.lower()
    return Verdict(fault, "named" if named else "unnamed", "" if named else f"{at}{words}")


def faults_for(calls: list[str], chosen: list[str]) -> list[Fault]:
    """The first call fails, for each; and every call, for the runtime's own (operators fail alike each time)."""
    faults = []
    for call in calls:
        if chosen and call not in chosen:
            continue
        faults.append(Fault(call, "1"))
        if not call.startswith("aclnn"):
            faults.append(Fault(call, "*"))
    return faults


def outcomes_table(verdicts: list[Verdict]) -> list[str]:
    counts = Counter(verdict.outcome for verdict in verdicts)
    return [
        "| outcome | runs | meaning |",
        "|---|---|---|",
        *(f"| {name} | {counts[name]} | {meaning} |" for name, meaning in OUTCOMES.items()),
    ]


def calls_table(verdicts: list[Verdict]) -> list[str]:
    """A row per call."""
    by_call: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        by_call.setdefault(verdict.fault.call, {})[verdict.fault.occurrence] = verdict
    lines = ["| call | first call fails | every call fails | seen |", "|---|---|---|---|"]
    for call, found in sorted(by_call.items()):
        first, every = found.get("1"), found.get("*")
        seen = []
        for verdict in (first, every):
            if verdict is not None:
                known = KNOWN.get((call, verdict.fault.occurrence))
                texts = [known] if known and verdict.outcome in BAD else [verdict.seen]
                seen += [text for text in texts if text and text not in seen]
        cell = "; ".join(seen).replace("|", "\\|").replace("<", "&lt;")
        names = [verdict.outcome if verdict else "" for verdict in (first, every)]
        lines.append(f"| `{call}` | {names[0]} | {names[1]} | {cell} |")
    return lines


def document(verdicts: list[Verdict], identity: str) -> str:
    """Every call, for people."""
    lines = [
        "# Faults",
        "",
        "Written by `python tools/simnpu/faults.py`. A small program (allocate, copy, compute, differentiate, draw,",
        "stream, event, graph, callback, print, free) runs once undisturbed, which tells the calls it makes to the",
        "runtime; then once per call with that call failing, the first time or every time, each in a fresh process.",
        "Operators (`aclnn…`) fail the first time only. A crash, a hang or a wrong number is explained in the",
        "last column.",
        "",
        f"Simulator {identity}.",
        "",
        *outcomes_table(verdicts),
        "",
        *calls_table(verdicts),
    ]
    return "\n".join(lines) + "\n"


def with_summary(page: str, verdicts: list[Verdict], identity: str) -> str:
    """The page with the outcomes, and the calls that torch_npu does not handle, between its two marks."""
    before, begin, rest = page.partition(SUMMARY_BEGIN)
    _, end, after = rest.partition(SUMMARY_END)
    if not end:
        raise ValueError(f"the page has no lines {SUMMARY_BEGIN} and {SUMMARY_END}")
    unhandled = {verdict.fault.call for verdict in verdicts if verdict.outcome in BAD}
    lines = [
        "",
        f"Simulator {identity}.",
        "",
        *outcomes_table(verdicts),
        "",
        "Not every failure is handled by torch_npu. These end badly, on any device, by what its own code does:",
        "",
        *calls_table([verdict for verdict in verdicts if verdict.fault.call in unhandled]),
        "",
    ]
    return before + begin + "\n".join(lines) + end + after


def verdict_of(fault: Fault, reference: Run, keep: Path | None) -> Verdict:
    run = run_program(fault.rule)
    if keep:
        (keep / f"{fault.call}.{'first' if fault.occurrence == '1' else 'every'}.txt").write_text(run.output)
    return judge(fault, run, reference)


def judge_all(faults: list[Fault], reference: Run, jobs: int, keep: Path | None) -> list[Verdict]:
    verdicts = []
    with ThreadPoolExecutor(jobs) as pool:
        pending = [pool.submit(verdict_of, fault, reference, keep) for fault in faults]
        try:
            for number, done in enumerate(as_completed(pending), 1):
                verdict = done.result()
                verdicts.append(verdict)
                tail = f": {verdict.seen}" if verdict.outcome in BAD else ""
                print(f"[{number}/{len(faults)}] {verdict.fault.rule} {verdict.outcome}{tail}", flush=True)
        except BaseException:
            for future in pending:
                future.cancel()
            RUNNING.stop()
            raise
    return sorted(verdicts, key=lambda verdict: (verdict.fault.call, verdict.fault.occurrence))


def unexplained(verdicts: list[Verdict]) -> list[str]:
    """Bad outcomes without a known reason, and reasons for what no longer happens."""
    problems = []
    for verdict in verdicts:
        known = KNOWN.get((verdict.fault.call, verdict.fault.occurrence))
        if verdict.outcome in BAD and not known:
            problems.append(f"{verdict.fault.rule}: {verdict.outcome}: {verdict.seen}")
        elif known and verdict.outcome not in BAD and (verdict.fault.call, verdict.fault.occurrence) not in SOMETIMES:
            problems.append(f"{verdict.fault.rule}: {verdict.outcome}, but KNOWN says: {known}")
    return problems


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/simnpu/faults.py",
        description="Make every call to the simulated runtime fail in turn and classify what a program sees.",
        epilog="Writes docs/faults.md, and its summary in docs/simnpu.md. Exit code 1: a crash, a hang or a wrong "
        "number that tools/simnpu/faults.py does not explain. "
        "Example: tools/simnpu/faults.py --call aclrtMemcpy --keep /tmp/outputs",
    )
    parser.add_argument(
        "--call", action="append", default=[], metavar="NAME", help="only this call; nothing is written"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="programs at a time")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="keep what each program printed")
    options = parser.parse_args(argv)
    if options.jobs < 1:
        parser.error("--jobs must be 1 or more")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)

    print("the undisturbed run", flush=True)
    reference = run_program(None)
    if reference.returncode != 0 or not reference.steps or reference.steps[-1][0] != "end":
        print(f"error: the program fails without any fault:\n{reference.output}", file=sys.stderr)
        return 2
    calls = sorted(calls_in(reference.log))
    if missing := set(options.call) - set(calls):
        print(
            f"error: the program makes no call {', '.join(sorted(missing))}. It makes: {', '.join(calls)}",
            file=sys.stderr,
        )
        return 2
    faults = faults_for(calls, options.call)
    print(f"{len(calls)} calls, {len(faults)} faults, {options.jobs} at a time", flush=True)
    verdicts = judge_all(faults, reference, options.jobs, options.keep)

    counts = Counter(verdict.outcome for verdict in verdicts)
    print(", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name]))
    if not options.call:
        import simnpu

        identity = simnpu.build_id()
        DOCUMENT.write_text(document(verdicts, identity), encoding="utf-8")
        page = SUMMARY.read_text(encoding="utf-8")
        SUMMARY.write_text(with_summary(page, verdicts, identity), encoding="utf-8")
        print(f"written: {DOCUMENT}, {SUMMARY}")
    problems = unexplained(verdicts)
    for problem in problems:
        print(f"unexplained: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
