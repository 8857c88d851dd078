"""Uses the simulated NPU for minutes from many threads in two processes, and says whether anything went wrong or grew.

What a test of seconds cannot see: a handle kept per call, a thread per stream, a race that takes an hour to lose.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("stress_worker.py")
PROGRESS_SECONDS = 15
SAMPLES = 100  # about so many in a run by time
PATIENCE_SECONDS = 180  # a process that says nothing for so long hangs; a round takes about a second
STACK_SECONDS = 5  # for writing the stacks of a hanging process
WARM_UP = 0.25  # the first part of the samples: caches fill, streams start their threads
QUARTERS = 4
LEAST = 2 * QUARTERS  # judged samples without which there is no verdict about growth
TAIL = 40  # lines of a failed process's output that are shown
MEBI = 1 << 20

# What may grow by how much over the judged part of a run, by the fitted line. Everything else: by nothing at all.
RESIDENT = "resident bytes"
TOLERANCES: dict[str, float] = {
    RESIDENT: 16 * MEBI,  # the C library's heap keeps holes
    "mapped regions": 24,  # and its arenas split and join
    "live events": 8,  # torch keeps events for the next time; how many is a matter of timing
    "live pinned allocations": 8,  # given back when their event has been seen, at the next allocation
    "live reserved ranges": 8,  # expandable segments keep a range of addresses per stream that ever used one
}
NOTHING = 0.5  # less than one of anything


@dataclass(frozen=True)
class Sample:
    """What a process held after so many rounds, with nothing running."""

    rounds: int
    seconds: float
    values: dict[str, float]


@dataclass(frozen=True)
class Growth:
    """How a figure went over the judged samples: its fitted line and the medians of the four quarters."""

    first: float
    last: float
    fitted: float  # rise of the least-squares line from the first to the last judged sample
    per_round: float
    medians: tuple[float, ...]

    def exceeds(self, tolerance: float) -> bool:
        """A plateau, noise and a single step are no growth: it must rise from quarter to quarter, and far enough."""
        rising = all(earlier < later for earlier, later in itertools.pairwise(self.medians))
        return rising and self.fitted > tolerance


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def judged(samples: Sequence[Sample]) -> Sequence[Sample]:
    """The samples after the warm-up."""
    return samples[int(len(samples) * WARM_UP) :]


def growth(samples: Sequence[Sample], name: str) -> Growth:
    """Of one figure over these samples, which must be at least LEAST."""
    at = [float(sample.rounds) for sample in samples]
    values = [sample.values[name] for sample in samples]
    mean_at, mean = sum(at) / len(at), sum(values) / len(values)
    spread = sum((x - mean_at) ** 2 for x in at)
    slope = sum((x - mean_at) * (y - mean) for x, y in zip(at, values, strict=True)) / spread
    cuts = [round(part * len(values) / QUARTERS) for part in range(QUARTERS + 1)]
    medians = tuple(median(values[begin:end]) for begin, end in itertools.pairwise(cuts))
    return Growth(values[0], values[-1], slope * (at[-1] - at[0]), slope, medians)


def amount(name: str, value: float) -> str:
    return f"{value / MEBI:.1f} MiB" if name.endswith("bytes") else f"{value:g}"


def findings(samples: Sequence[Sample]) -> list[str]:
    """What is wrong with what the process held, a sentence each; [] if nothing is."""
    found = [
        f"{sample.values['allocated']:g} bytes of tensors are still allocated after round {sample.rounds}, although "
        "every tensor is gone"
        for sample in samples
        if sample.values["allocated"]
    ][:1]
    rest = judged(samples)
    if len(rest) < LEAST:
        found.append(
            f"only {len(rest)} samples after the warm-up, too few to tell growth: {LEAST} are needed. "
            "Remedy: run longer"
        )
        return found
    for name in rest[0].values:
        if name == "allocated":
            continue
        went = growth(rest, name)
        tolerance = TOLERANCES.get(name, NOTHING)
        if went.exceeds(tolerance):
            per_round = f"{went.per_round:.0f} bytes" if name.endswith("bytes") else f"{went.per_round:.3g}"
            found.append(
                f"{name} grow: {amount(name, went.first)} after round {rest[0].rounds}, "
                f"{amount(name, went.last)} after round {rest[-1].rounds}, {per_round} per round, in each quarter "
                f"of the run (medians {', '.join(amount(name, value) for value in went.medians)}; "
                f"allowed: {amount(name, tolerance) if tolerance > NOTHING else 'none'})"
            )
    return found


@dataclass
class Worker:
    """A process under way, and what it has told so far."""

    name: str
    command: list[str]
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    report: IO[bytes] | None = None
    output: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    samples: list[Sample] = field(default_factory=list)
    rounds: int = 0
    checks: int = 0
    ran: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    ended: bool = False
    problem: str | None = None
    heard: float = field(default_factory=time.monotonic)
    _rest: bytes = b""

    def start(self) -> None:
        reading, writing = os.pipe()
        self.report = os.fdopen(reading, "rb", buffering=0)
        try:
            self.process = subprocess.Popen(
                [*self.command, "--report-fd", str(writing)],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=subprocess.STDOUT,
                pass_fds=[writing],
                start_new_session=True,  # Ctrl-C is for this program, which then ends them
            )
        finally:
            os.close(writing)
        self.heard = time.monotonic()

    def read(self) -> bool:
        """Takes in what the process wrote; False at the end."""
        assert self.report is not None
        data = os.read(self.report.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.heard = time.monotonic()
            self.take(json.loads(line))
        return bool(data)

    def take(self, told: dict[str, Any]) -> None:
        if told["event"] == "failed":
            self.problem = told["text"].strip()
            return
        self.rounds, self.checks = told["rounds"], told["checks"]
        if told["event"] == "sample":
            self.samples.append(Sample(told["rounds"], told["seconds"], told["values"]))
        if told["event"] == "end":
            self.ended, self.ran, self.calls = True, told["ran"], told["calls"]

    def finish(self) -> None:
        """After the end of its report: how did the process end?"""
        assert self.process is not None
        code = self.process.wait()
        if self.problem is None and (code or not self.ended):
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            self.problem = f"the process {how} after round {self.rounds}:\n{self.tail()}"

    def hang(self, patience: float) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR1)  # the worker's faulthandler writes the stacks of all threads
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STACK_SECONDS)
        self.problem = (
            f"hangs: nothing was heard for {patience:g} s after round {self.rounds}. Its threads:\n{self.tail(8)}"
        )
        self.kill()

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        """Ends the process if it runs, and keeps only what it said."""
        self.kill()
        if self.report is not None:
            self.report.close()
        self.output.close()

    def tail(self, times: int = 1) -> str:
        self.output.seek(0)
        lines = self.output.read().decode(errors="replace").splitlines()
        return "\n".join(f"    {line}" for line in lines[-TAIL * times :])

    def line(self) -> str:
        """One line about where it is."""
        text = f"{self.name}: round {self.rounds}, {self.checks} checks"
        if self.samples:
            values = self.samples[-1].values
            text += (
                f", {values[RESIDENT] / MEBI:.0f} MiB resident, {values['file descriptors']:g} files, "
                f"{values['threads']:g} threads, {values['mapped regions']:g} mappings"
            )
        return text


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:3d}:{int(seconds) % 60:02d}"


def watch(workers: Iterable[Worker], *, patience: float = PATIENCE_SECONDS) -> bool:
    """Runs the processes to their end, or to the first problem, and shows progress. False if interrupted (Ctrl-C)."""
    workers = list(workers)
    begin = time.monotonic()
    shown = begin
    try:
        with selectors.DefaultSelector() as selector:
            for worker in workers:
                worker.start()
                assert worker.report is not None
                selector.register(worker.report, selectors.EVENT_READ, worker)
            while selector.get_map() and not any(worker.problem for worker in workers):
                for key, _events in selector.select(1.0):
                    if not key.data.read():
                        selector.unregister(key.fileobj)
                        key.data.finish()
                now = time.monotonic()
                for worker in workers:
                    if not worker.ended and worker.problem is None and now - worker.heard > patience:
                        worker.hang(patience)
                if now - shown >= PROGRESS_SECONDS:
                    shown = now
                    print(clock(now - begin), " | ".join(worker.line() for worker in workers), flush=True)
    except KeyboardInterrupt:
        return False
    finally:
        for worker in workers:
            worker.close()
    return True


def summary(worker: Worker) -> list[str]:
    """What the process did and how its figures went."""
    lines = [f"{worker.name}: {worker.rounds} rounds, {worker.checks} checks, {len(worker.samples)} samples"]
    if worker.calls:
        ran = ", ".join(f"{count} {name}" for name, count in sorted(worker.ran.items()))
        lines += [f"  {worker.calls} calls of the runtime; {ran}"]
    rest = judged(worker.samples)
    if len(rest) < LEAST:
        return lines
    lines.append(f"  after the warm-up (rounds {rest[0].rounds} to {rest[-1].rounds}):")
    for name in rest[0].values:
        went = growth(rest, name)
        slope = f"{went.per_round:+.0f} bytes" if name.endswith("bytes") else f"{went.per_round:+.3g}"
        lines.append(
            f"    {name:<24} {amount(name, went.first):>11} -> {amount(name, went.last):>11}   "
            f"{slope} per round, fitted {'-' if went.fitted < 0 else '+'}{amount(name, abs(went.fitted))}"
        )
    return lines


def verdict(workers: Iterable[Worker], *, whole: bool) -> list[str]:
    """Prints what each process did; the problems, a text each. `whole`: the run was not interrupted."""
    problems = []
    for worker in workers:
        print("\n".join(summary(worker)))
        if worker.problem:
            problems.append(f"{worker.name}: {worker.problem}")
        elif whole and worker.ended:
            problems += [f"{worker.name}: {text}" for text in findings(worker.samples)]
    return problems


def workers_for(options: argparse.Namespace, seed: int) -> list[Worker]:
    """The two processes, which differ in how torch gets its memory and how torch_npu issues operators."""
    import simnpu

    # Operators run on threads of the simulator, and OpenMP would start a team for each.
    environment = simnpu.environ(fault=options.fault) | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAM), "--seed", str(seed)]
    if options.rounds is not None:
        command += ["--rounds", str(options.rounds), "--every", "0"]
    else:
        command += ["--seconds", str(options.minutes * 60), "--every", str(options.minutes * 60 / SAMPLES)]
    if options.also:
        command += ["--also", str(options.also.resolve())]
    for name in options.only:
        command += ["--only", name]
    return [
        Worker("plain", command, environment | {"TASK_QUEUE_ENABLE": "1"}),
        Worker(
            "expandable",
            command,
            environment | {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True", "TASK_QUEUE_ENABLE": "0"},
        ),
    ]


def positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def least_rounds(text: str) -> int:
    value = int(text)
    if value < LEAST + 3:
        raise argparse.ArgumentTypeError(f"at least {LEAST + 3} rounds are needed to tell growth, not {text}")
    return value


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/simnpu/stress.py",
        description="Use the simulated NPU through the unmodified torch_npu for minutes: two processes (plain and "
        "expandable segments), four threads each, the interpreter changing threads every microsecond. Threads compute, "
        "allocate, copy, capture and replay graphs, order streams by events, run callbacks, and check every number. "
        "Between rounds, with everything idle and every cache emptied, each process counts what it holds: resident "
        "memory, open files, threads, mapped regions, bytes on the devices, live handles.",
        epilog="Exit code 0: every number was right and nothing grew. 1: an error, a crash, a hang, or growth, with "
        "its cause. 130: interrupted; what is known so far is printed. Growth is a figure whose median rises in each "
        "quarter of the run after the warm-up (its first quarter), and whose fitted line rises by more than is "
        f"allowed (resident memory: {TOLERANCES[RESIDENT] / MEBI:g} MiB; open files, threads, device bytes: nothing). "
        "The seed repeats what each thread does, not how the threads interleave.",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=positive, default=10.0, metavar="M", help="how long (default 10)")
    length.add_argument(
        "--rounds", type=least_rounds, metavar="N", help="so many rounds instead, with a sample after each"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="repeat an earlier run's choices (default: new ones)")
    parser.add_argument("--only", action="append", default=[], metavar="SCENARIO", help="only this one; repeatable")
    parser.add_argument(
        "--also", type=Path, metavar="FILE", help="more scenarios: each function stress_…(place) of this Python file"
    )
    parser.add_argument("--fault", metavar="RULE", help="make calls fail, as SIMNPU_FAULT says")
    options = parser.parse_args(argv)
    if options.also and not options.also.is_file():
        parser.error(f"--also {options.also}: there is no such file")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)

    again = f"--seed {seed} " + (f"--rounds {options.rounds}" if options.rounds else f"--minutes {options.minutes:g}")
    print(f"to repeat: python tools/simnpu/stress.py {again}", flush=True)
    sys.path.insert(0, str(ROOT))
    from simnpu.settings import SettingError

    try:
        workers = workers_for(options, seed)
    except SettingError as error:
        parser.error(str(error))
    whole = watch(workers)
    problems = verdict(workers, whole=whole)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if not whole:
        print("interrupted: no verdict about growth", file=sys.stderr)
        return 130
    if problems:
        return 1
    print("no error, no growth")
    return 0


if __name__ == "__main__":
    sys.exit(main())
