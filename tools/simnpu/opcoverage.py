"""How much of PyTorch the simulated NPU answers, and how truly: PyTorch's own operator database, against the CPU.

Exists as a yardstick for the operator library. Records go to build/opcoverage, the table to docs/opcoverage.md. A run
that was interrupted goes on where it was; one after a change of the simulator starts over.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import simnpu  # noqa: E402 - found by the line above
from simnpu.toolchain import build as kernel_compiler  # noqa: E402
from simnpu.toolchain import surroundings  # noqa: E402

WORKER = Path(__file__).with_name("opcoverage_worker.py")
RECORDS = ROOT / "build" / "opcoverage" / "records.jsonl"
TABLE = ROOT / "docs" / "opcoverage.md"
DTYPES = ("float32", "float16", "bfloat16", "int64", "bool")
DIRECTIONS = ("forward", "backward", "compiled")
VERDICTS = {
    "passing": "every sample agrees with the CPU",
    "refused": "a device does not take the type, as CANN's pages say",
    "unsupported": "an error that names what is missing",
    "lost by torch_npu": "torch_npu drops or changes an argument before the device sees it: on any device",
    "on CPU by torch_npu": "torch_npu copies to the CPU and computes there: says nothing about the simulator",
    "without kernels": "every sample agrees, but Inductor makes no kernel of it and calls the operator library",
    "wrong": "numbers, shape or dtype differ",
    "crash": "the process died",
    "timeout": "no end in time",
    "error": "an error that names nothing",
}


class Loss(NamedTuple):
    """What the wheel itself loses on the way to the device, whichever device it is."""

    op: str
    dtype: str
    direction: str
    sign: str  # found in every failure that this explains: another failure of the same operator stays what it is
    reason: str


_NO_DOUBLE = (r"torch\.float32 .*expected torch\.float64", "float64 is replaced by float32, with a warning")
_MASK = (r"torch\.int8 .*expected torch\.int64", "returns the device's mask for the backward in place of the indices")
_INT32 = (r"torch\.int32 .*expected torch\.int64", "the indices are int32")
_STATISTICS = (
    r"torch\.float32 .*expected torch\.b?float16|\(\d*,\) .*expected torch\.b?float\d+ \(0,",
    "keeps the statistics in float32, and has some where only running statistics are used",
)
_EMPTY = (
    "cannot reshape tensor of 0 elements",
    "a matrix without elements is reshaped to [-1, 0], which torch refuses",
)
_INTEGER_LOGIT = ("aclnnLogit: the result has type Float", "makes an output of the input's type")
_STRIDES = ("expected size", "the operator's result has other strides than NPU Inductor was told")
_COMPLEX = ("'complex' object has no attribute", "NPU Inductor cannot print a complex constant")
_DOUBLE = ("fp64", "NPU Inductor makes a kernel of float64, which triton-ascend has not")
_ADAPTER = ("triton-adapter-opt", "triton-ascend's adapter fails on the kernel that NPU Inductor makes")
WHEEL = [
    *(Loss("*", "*", "compiled", *reason) for reason in (_STRIDES, _COMPLEX, _DOUBLE, _ADAPTER)),
    Loss("sum", "*", "compiled", "tuple index out of range", "NPU Inductor fails on a tensor without dimensions"),
    Loss("logsumexp", "*", "compiled", "tuple index out of range", "NPU Inductor fails on a tensor without dimensions"),
    Loss("count_nonzero", "*", "compiled", "tuple index|torch.bool", "NPU Inductor sums bool as bool"),
    Loss("double", "*", "*", *_NO_DOUBLE),
    Loss("to", "*", "*", *_NO_DOUBLE),
    Loss("float_power", "*", "*", *_NO_DOUBLE),
    Loss("nn.functional.gelu", "*", "*", "approximate='tanh'", "drops approximate: aclnnGelu has no such argument"),
    Loss("nn.functional.max_pool1d", "*", "forward", *_MASK),
    Loss("nn.functional.max_pool2d", "*", "forward", *_MASK),
    Loss("nn.functional.max_pool3d", "*", "forward", *_INT32),
    Loss("nn.functional.adaptive_max_pool3d", "*", "forward", *_INT32),
    Loss("native_batch_norm", "*", "*", *_STATISTICS),
    Loss("_native_batch_norm_legit", "*", "*", *_STATISTICS),
    Loss("native_layer_norm", "*", "forward", *_STATISTICS),
    Loss("native_dropout_backward", "*", "forward", "", "takes the mask for one of packed bits, whatever its type"),
    Loss(
        "nn.functional.binary_cross_entropy_with_logits",
        "*",
        "backward",
        "None, expected a tensor",
        "has no gradient for the target",
    ),
    Loss("matmul", "*", "backward", *_EMPTY),
    Loss("__rmatmul__", "*", "backward", *_EMPTY),
    Loss("linalg.pinv.singular", "*", "backward", *_EMPTY),
    Loss("logit", "int64", "forward", *_INTEGER_LOGIT),
    Loss("logit", "bool", "forward", *_INTEGER_LOGIT),
]

Record = dict[str, Any]


class Key(NamedTuple):
    """What one record is about."""

    op: str
    dtype: str
    direction: str

    @classmethod
    def of(cls, record: Record) -> Key:
        """The key of a record."""
        return cls(record["op"], record["dtype"], record["direction"])


_REFUSED = "which a device does not take"
_NAMES = (
    re.compile(r"operation '?\"?([\w.]+)'?\"? is not simulated"),
    re.compile(r"the library function (\w+) (?:of these types )?is not simulated"),
    re.compile(r"custom op '([\w.]+)'"),
    re.compile(r"(Unsupported dtype \w+)"),
    re.compile(r"(acl\w+?) or acl\w+ not in libopapi"),
    re.compile(r"Failed to find function (\w+)"),
    re.compile(r"(operator \w+ of the legacy path) is not simulated"),
    re.compile(r"Could not run '([\w:.]+)' with arguments from the '\w+' backend"),
    re.compile(r"(aclnn\w+?)(?:GetWorkspaceSize)?: [^\n]*?(\"?[\w:. ()]+\"? (?:is|are) not simulated)"),
    re.compile(rf"(aclnn\w+): argument \d+ (\(\w+\) has type \w+), {_REFUSED}"),
    re.compile(r"(aclnn\w+?)(?:GetWorkspaceSize)?: [^\n]*?(not implemented for '\w+')"),
    re.compile(r"(\"?\w+\"? not implemented for '\w+')"),
    re.compile(r"\w+: ([^\n]+)\n\[ERROR\][^\n]* OPS feature not supported"),
    re.compile(r"(not differentiable with respect to argument '\w+')"),
)


def missing_name(error: str) -> str | None:
    """What an error says is missing, in few words; None if it names nothing."""
    for pattern in _NAMES:
        if found := pattern.search(error):
            return ": ".join(group.strip() for group in found.groups())
    return None


def losses(record: Record) -> dict[str, str]:
    """Those failures of a record that torch_npu makes on any device, with the reason that WHEEL gives."""
    entries = [entry for entry in WHEEL if all(map(fnmatch.fnmatch, Key.of(record), entry[:3]))]
    return {
        text: entry.reason
        for entry in entries
        for text in [*record["wrong"], *record["errors"]]
        if re.search(entry.sign, text)
    }


def verdict(record: Record) -> str:
    """One of VERDICTS, or "not counted" where the CPU refuses every sample. The worst of what the samples met."""
    if died := record.get("died"):
        return "timeout" if died.startswith("no end") else "crash"
    if not record["samples"]:
        return "not counted"
    lost = losses(record)
    if set(record["wrong"]) - set(lost):
        return "wrong"
    if errors := [text for text in record["errors"] if text not in lost]:
        if all(_REFUSED in text for text in errors):
            return "refused"
        return "error" if any(missing_name(text) is None for text in errors) else "unsupported"
    if lost:
        return "lost by torch_npu"
    if record["on_cpu"]:
        return "on CPU by torch_npu"
    return "without kernels" if record["direction"] == "compiled" and not record["kernels"] else "passing"


class Records:
    """The records of one simulator build, kept in a file that grows with each."""

    def __init__(self, path: Path, build: str, *, fresh: bool = False, trust: bool = False):
        """fresh: forget what is there. trust: what passed with another build need not run again."""
        self.path = path
        self.build = build
        self.by_key: dict[Key, Record] = {}
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        if not path.exists():
            return
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # the last line of a run that was killed
                record = json.loads(line)
                if record["build"] == build or (trust and verdict(record) in ("passing", "not counted")):
                    self.by_key[Key.of(record)] = record
                elif trust:
                    self.by_key.pop(Key.of(record), None)

    def add(self, key: Key, record: Record) -> Record:
        """Keeps a record at once."""
        record = {"build": self.build, **key._asdict(), **record}
        with self._lock:
            self.by_key[key] = record
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        return record


class Worker:
    """A process that answers tasks one by one. Started again when it dies."""

    def __init__(self, command: list[str], environment: dict[str, str]):
        self._command, self._environment = command, environment
        self.hello: Record = {}
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the parent, which then ends the worker and its child together
        )
        self.hello = self._read() or {}
        if not self.hello:
            raise SystemExit(
                f"error: the worker ended at its start with {self._process.wait()} (its messages are above). Remedy: "
                "`python -m simnpu doctor`, and check that torch's test utilities are complete: "
                f"{' '.join(self._command)} must print a line and wait."
            )

    def _read(self) -> Record | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def ask(self, task: Record) -> Record:
        """The answer; if the worker itself dies, a record that says so."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
        answer = self._read()
        if answer is None:
            code = self._process.wait()
            self.stop()  # also a child that is left
            self._start()
            return {"died": f"the worker ended with {code}"}
        return answer

    def stop(self) -> None:
        """Ends the worker and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # what the dead worker was not told
                pipe.close()


def run(
    tasks: Iterable[Key],
    workers: list[Worker],
    records: Records,
    settings: Record,
    say: Callable[[str], None] = print,
) -> bool:
    """Has the workers answer all tasks; each record is kept when it comes. False if Ctrl-C ended it."""
    waiting = collections.deque(tasks)
    total = len(waiting)
    done = 0
    interrupted = threading.Event()
    lock = threading.Lock()

    def work(worker: Worker) -> None:
        nonlocal done
        while not interrupted.is_set():
            try:
                key = waiting.popleft()
            except IndexError:
                return
            answer = worker.ask(key._asdict() | settings)
            if interrupted.is_set():
                return  # the worker was stopped: not the operator's fault
            record = records.add(key, answer)
            with lock:
                done += 1
                say(progress_line(done, total, record))

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        interrupted.set()
    for worker in workers:
        worker.stop()
    return not interrupted.is_set()


def progress_line(done: int, total: int, record: Record) -> str:
    """One line of the log."""
    said = verdict(record)
    line = f"[{done}/{total}] {record['op']} {record['dtype']} {record['direction']}: {said}"
    if detail := explanation(record):
        line += f" - {detail}"
    return line


def explanation(record: Record) -> str:
    """Why a record is not passing, in one line."""
    said = verdict(record)
    if died := record.get("died"):
        return died
    lost = losses(record)
    if said == "wrong":
        first = next(text for text in record["wrong"] if text not in lost)
        return f"{record['differing']} of {record['samples']} samples; {first}"
    if said == "lost by torch_npu":
        return "; ".join(sorted(set(lost.values())))
    if said in ("unsupported", "refused"):
        return ", ".join(missing_names(record))
    if said == "error":
        return next(
            " ".join(text.split())[:300] for text in record["errors"] if text not in lost and not missing_name(text)
        )
    return ", ".join(record["on_cpu"]) if said == "on CPU by torch_npu" else ""


def missing_names(record: Record) -> list[str]:
    """What the errors of a record say is missing."""
    lost = losses(record)
    return sorted({name for text in record["errors"] if text not in lost and (name := missing_name(text))})


@dataclass(frozen=True)
class Summary:
    """The records by verdict."""

    records: list[Record]

    def columns(self) -> list[tuple[str, str]]:
        """The pairs of dtype and direction that have records."""
        there = {(record["dtype"], record["direction"]) for record in self.records}
        order = [(dtype, direction) for direction in DIRECTIONS for dtype in DTYPES]
        return [pair for pair in order if pair in there] + sorted(there - set(order))

    def of(self, dtype: str, direction: str) -> Iterator[Record]:
        """The records of one column."""
        return (record for record in self.records if (record["dtype"], record["direction"]) == (dtype, direction))

    def totals(self) -> list[tuple[str, str, dict[str, int]]]:
        """For each column: how many records have which verdict."""
        return [(*pair, dict(collections.Counter(map(verdict, self.of(*pair))))) for pair in self.columns()]

    def having(self, wanted: str) -> list[Record]:
        """The records of one verdict, by operator."""
        return sorted((record for record in self.records if verdict(record) == wanted), key=Key.of)

    def text(self) -> str:
        """The totals for a terminal."""
        return "\n".join(
            f"{dtype} {direction}: " + ", ".join(f"{counts[name]} {name}" for name in VERDICTS if name in counts)
            for dtype, direction, counts in self.totals()
        )

    def missing(self) -> list[tuple[str, list[Record]]]:
        """What is missing, most wanted first, with the records that miss it."""
        groups: dict[str, list[Record]] = collections.defaultdict(list)
        for record in self.having("unsupported"):
            for name in missing_names(record):
                groups[name].append(record)
        return sorted(groups.items(), key=lambda group: (-len({record["op"] for record in group[1]}), group[0]))

    def accepted(self) -> list[tuple[str, list[Record]]]:
        """The aclnn operators for which no page lists types, with the records that reached them.

        What a page lists is refused by the operator library itself, so that nothing else is accepted by mistake.
        """
        groups: dict[str, list[Record]] = collections.defaultdict(list)
        for record in self.having("passing"):
            for name in record.get("undocumented", []):
                groups[name].append(record)
        return sorted(groups.items())

    def markdown(self, build: str, command: str) -> str:
        """The page that a command writes, docs/opcoverage.md without arguments."""
        totals = self.totals()
        shown = [name for name in VERDICTS if any(name in counts for _, _, counts in totals)]
        randoms = len({record["op"] for record in self.records if record.get("random")})
        lines = [
            "# PyTorch's operators on the simulated NPU",
            "",
            f"Written by `python {command}`; do not edit. Every operator of PyTorch's own database, with its",
            "own sample inputs, is run on the simulated NPU and on the CPU. What it returns, what it writes into its",
            "arguments and its gradients are compared with the operator's own tolerances; where two ways of rounding",
            "are further apart, both are compared with the CPU in the next higher precision. An operator counts once:",
            "one sample that is not supported makes it unsupported, one that differs makes it wrong. A dtype that the",
            "CPU lacks and other devices take is compared with the CPU in float64; what the device refuses as well is",
            "not counted.",
            f"Random operators ({randoms}) are compared in shape, dtype and device only.",
            "",
            f"Simulator {build}.",
            "",
            "| dtype | direction | operators | " + " | ".join(shown) + " |",
            "|---|---|" + "---:|" * (len(shown) + 1),
        ]
        for dtype, direction, counts in totals:
            counted = sum(number for name, number in counts.items() if name in VERDICTS)
            row = " | ".join(str(counts.get(name, 0)) for name in shown)
            lines.append(f"| {dtype} | {direction} | {counted} | {row} |")
        lines += ["", *(f"- {name}: {VERDICTS[name]}" for name in shown)]
        for name in ("wrong", "crash", "timeout", "error"):
            if records := self.having(name):
                lines += [
                    "",
                    f"## {name.capitalize()}",
                    "",
                    "| operator | dtype | direction | what |",
                    "|---|---|---|---|",
                ]
                lines += [f"| {' | '.join(Key.of(record))} | {_cell(explanation(record))} |" for record in records]
        for name in ("lost by torch_npu", "on CPU by torch_npu"):
            if groups := _grouped(self.having(name)):
                lines += ["", f"## {name[0].upper()}{name[1:]}", "", "| what | operators |", "|---|---|"]
                lines += [f"| {_cell(what)} | {_cell(_operators(records))} |" for what, records in groups]
        if refused := self.having("refused"):
            lines += ["", "## Refused, as a device does", "", "| type | operators |", "|---|---|"]
            lines += [f"| {_cell(what)} | {_cell(_operators(records))} |" for what, records in _grouped(refused)]
        if accepted := self.accepted():
            lines += [
                "",
                "## Accepted, and nothing is known of what a device takes",
                "",
                "| operator | used by |",
                "|---|---|",
            ]
            lines += [f"| {_cell(what)} | {_cell(_operators(records))} |" for what, records in accepted]
        if missing := self.missing():
            lines += ["", "## Unsupported, by what is missing", "", "| missing | operators |", "|---|---|"]
            lines += [f"| {_cell(name)} | {_cell(_operators(records))} |" for name, records in missing]
        return "\n".join(lines) + "\n"


def _grouped(records: list[Record]) -> list[tuple[str, list[Record]]]:
    groups: dict[str, list[Record]] = collections.defaultdict(list)
    for record in records:
        groups[explanation(record)].append(record)
    return sorted(groups.items())


def _operators(records: list[Record]) -> str:
    # "add, sub (backward), mul (int64)": float32 forward goes without saying.
    by_op: dict[str, list[str]] = collections.defaultdict(list)
    for record in records:
        where = [record["dtype"]] if record["dtype"] != "float32" else []
        where += ["backward"] if record["direction"] == "backward" else []
        by_op[record["op"]].append(" ".join(where))
    return ", ".join(op if "" in where else f"{op} ({', '.join(where)})" for op, where in sorted(by_op.items()))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def tasks(operators: Record, dtypes: Iterable[str], directions: Iterable[str], patterns: list[str]) -> Iterator[Key]:
    """What is to run: forward, gradients and compiled in float32, then forward in the other dtypes."""
    wanted = [op for op in operators if not patterns or any(fnmatch.fnmatch(op, pattern) for pattern in patterns)]
    for dtype in dtypes:
        for direction in directions:
            if direction != "forward" and dtype != "float32":
                continue
            for op in wanted:
                if dtype in operators[op][direction]:
                    yield Key(op, dtype, direction)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: tools/simnpu/opcoverage.py --op 'nn.functional.*' --dtype float32 --direction backward",
    )
    parser.add_argument(
        "--op", action="append", default=[], metavar="NAME", help="only this operator; a pattern; repeatable"
    )
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="only this dtype; repeatable (default: all)")
    parser.add_argument(
        "--direction",
        choices=DIRECTIONS,
        help="backward: gradients; compiled: by torch.compile with Inductor; both in float32 (default: all)",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: %(default)s)"
    )
    parser.add_argument("--samples", type=int, default=0, metavar="N", help="the first N samples only (default: all)")
    parser.add_argument(
        "--timeout", type=int, default=240, metavar="SECONDS", help="for one operator (default: %(default)s)"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="start over, also what is recorded for this simulator build"
    )
    parser.add_argument(
        "--trust-passing",
        action="store_true",
        help="do not repeat what passed with another simulator build: while developing",
    )
    parser.add_argument("--records", type=Path, default=RECORDS, help="default: %(default)s")
    parser.add_argument(
        "--table", type=Path, help="where the page goes (default: docs/opcoverage.md, when nothing is filtered)"
    )
    options = parser.parse_args(argv)
    if options.jobs < 1 or options.timeout < 1 or options.samples < 0:
        parser.error("--jobs and --timeout must be 1 or more, --samples 0 (all) or more")
    return options


def toolchain() -> str:
    """Names the kernel compiler that is in use; "none" where there is none."""
    if surroundings.missing():  # `compiled` records will say so
        return "none"
    place = kernel_compiler.directory()
    return place.name if place else "none"


def compiling(place: Path) -> dict[str, str]:
    """What the workers need to compile: caches of their own, one process, and one configuration of each kernel."""
    return {
        # Triton's cache does not ask which compiler made its entries.
        "TRITON_CACHE_DIR": str(place / f"triton-{toolchain()}"),
        "TORCHINDUCTOR_CACHE_DIR": str(place / "inductor"),
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCH_WARM_POOL": "0",
        "FAST_RUN_WITH_MAX_TILING_NUM": "1",
    }


def main(argv: list[str] | None = None) -> int:
    """Runs what is missing, prints the summary, writes the page. 1: something is wrong, died or hung; 130: Ctrl-C."""
    options = arguments(argv)
    if options.direction == "compiled" and (reason := surroundings.missing()):
        raise SystemExit(f"error: nothing can be compiled: {reason}")
    # With its task queue on, torch_npu drops what is enqueued after a failure: failures would not be told apart.
    environment = simnpu.environ(memory="8G") | {"TASK_QUEUE_ENABLE": "0"} | compiling(options.records.parent)
    build = f"{simnpu.build_id()}, kernel compiler {toolchain()}"
    records = Records(options.records, build, fresh=options.fresh, trust=options.trust_passing)
    command = [sys.executable, str(WORKER)]
    first = Worker(command, environment)
    directions = [options.direction] if options.direction else DIRECTIONS
    selected = list(tasks(first.hello["operators"], options.dtype or DTYPES, directions, options.op))
    if not selected:
        first.stop()
        raise SystemExit(f"error: no operator of the database is selected by --op {' --op '.join(options.op)}")
    waiting = [key for key in selected if options.op or key not in records.by_key]
    print(
        f"{build}: {len(selected)} selected, {len(selected) - len(waiting)} recorded, {len(waiting)} to run", flush=True
    )
    workers = [first, *(Worker(command, environment) for _ in range(min(options.jobs, len(waiting)) - 1))]
    settings = {"samples": options.samples, "timeout": options.timeout}
    started = time.monotonic()
    finished = run(waiting, workers, records, settings, lambda line: print(line, flush=True))
    summary = Summary([records.by_key[key] for key in selected if key in records.by_key])
    print(f"{'finished' if finished else 'interrupted'} after {time.monotonic() - started:.0f} s\n{summary.text()}")
    filtered = options.op or options.dtype or options.direction or options.samples
    table = options.table or (None if filtered or not finished else TABLE)
    if table:
        command = " ".join(["tools/simnpu/opcoverage.py", *(sys.argv[1:] if argv is None else argv)])
        table.write_text(summary.markdown(build, command), encoding="utf-8")
        print(f"written: {table}")
    if not finished:
        return 130
    return int(any(summary.having(name) for name in ("wrong", "crash", "timeout")))


if __name__ == "__main__":
    raise SystemExit(main())
