"""What the simulated NPU costs: large operators against ATen on the CPU, the simulator's share of a tiny operator,
start-up, and (with --build) its compilation. The two sides of a ratio take turns within one process.

How each figure comes about:

large operators  4 Mi floats. Processor time of the whole process per operator, NPU by CPU in each round; median and
                 quartiles of the rounds. "wall" is the same by the clock. Each round times a batch with one
                 synchronisation at its end, after an untimed operator during which the other side's threads come to
                 rest. Both sides write to memory that was touched before: with out= a tensor made beforehand, without
                 memory that the allocator has kept; malloc is told to keep it as the device's caching allocator
                 does. Threads that wait sleep (OMP_WAIT_POLICY=passive), or their spinning would count as work.
tiny operator    add of 4 floats. The whole is what the calling thread and torch_npu's queue thread spend, the share is
                 what they spend inside calls of the simulator. The simulator's own workers are the device: not counted.
                 Time: the threads' processor time, against the simulator's clock around each outermost call in batches
                 between those; the clock's own cost and preemption are in it, so it errs upwards.
                 Instructions, where valgrind is installed: callgrind's counts per thread in user mode; the share is
                 calls from libtorch_npu.so into the simulator with all that they call.
start-up         Measured inside: processor time of loading the simulator's libraries before torch_npu asks for them,
                 plus the time in its calls while torch_npu is imported. The first operator (set the device, load the
                 operator library, add) has no target.
build            Processor time of the compiler and all that it starts, with an empty cache."""

# pyright: reportAttributeAccessIssue=false
# torch.npu exists only once torch_npu is imported, which a type checker cannot know.

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import simnpu

LARGE_RATIO = 1.15
TINY_SHARE = 0.25
IMPORT_SECONDS = 0.060
BUILD_SECONDS = 240.0
LARGE = 1 << 22
TINY = 4

ENVIRONMENT = {
    "OMP_WAIT_POLICY": "passive",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the most that malloc allows: a result of 16 MiB stays in its heap
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}


# --- What runs in a child process on the simulator -------------------------------------------------------------------


def import_both() -> Any:
    import torch
    import torch_npu  # noqa: F401

    return torch


def large_cases(torch: Any, device: str, elements: int) -> dict[str, Callable[[], Any]]:
    side = int(elements**0.5)
    shape = (side, side)
    a, b = (torch.linspace(0.1, 2.0, side * side).reshape(shape).to(device) for _ in range(2))
    out = torch.zeros(shape, device=device)
    row = torch.ones(side, device=device)
    # As many multiplications as make the product last about as long as the others.
    edge = max(side // 4, 2)
    m, product = torch.ones(edge, edge, device=device), torch.zeros(edge, edge, device=device)
    halves = a[: side // 2].clone(), b[: side // 2].clone()
    sums, largest, where = (torch.zeros(side, device=device) for _ in range(3))
    where = where.long()
    functional = torch.nn.functional
    return {
        "add out=": lambda: torch.add(a, b, out=out),
        "add": lambda: torch.add(a, b),
        "mul out=": lambda: torch.mul(a, b, out=out),
        "mul_": lambda: out.mul_(1.0),
        "exp out=": lambda: torch.exp(a, out=out),
        "relu": lambda: torch.relu(a),
        "gelu": lambda: functional.gelu(a),
        "sum dim, out=": lambda: torch.sum(a, 1, out=sums),
        "sum": lambda: torch.sum(a),
        "max dim, out=": lambda: torch.max(a, 1, out=(largest, where)),
        "matmul out=": lambda: torch.mm(m, m, out=product),
        "softmax": lambda: torch.softmax(a, 1),
        "layer_norm": lambda: functional.layer_norm(a, (side,), row, row),
        "copy_": lambda: out.copy_(a),
        "copy_ transposed": lambda: out.copy_(a.t()),
        "cat out=": lambda: torch.cat(halves, out=out),
    }


def clocked(case: Callable[[], Any], times: int, finish: Callable[[], Any]) -> tuple[float, float]:
    case()  # the threads of whoever ran before come to rest meanwhile
    finish()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(times):
        case()
    finish()
    return (time.process_time() - cpu) / times, (time.perf_counter() - wall) / times


def measure_large(rounds: int, batch: int, elements: int) -> list[dict[str, Any]]:
    torch = import_both()
    finish = torch.npu.synchronize
    cpu, npu = large_cases(torch, "cpu", elements), large_cases(torch, "npu", elements)
    rows = []
    for name in cpu:
        print(f"op_cost: {name}", file=sys.stderr, flush=True)
        clocked(cpu[name], 1, finish)
        clocked(npu[name], 1, finish)
        ratios, walls, seconds = [], [], []
        for _ in range(rounds):
            cpu_seconds, cpu_wall = clocked(cpu[name], batch, finish)
            npu_seconds, npu_wall = clocked(npu[name], batch, finish)
            ratios.append(npu_seconds / cpu_seconds)
            walls.append(npu_wall / cpu_wall)
            seconds.append(cpu_seconds)
        row = spread(f"{name}", ratios) | {"wall": statistics.median(walls), "cpu_seconds": statistics.median(seconds)}
        rows.append(row | {"target": LARGE_RATIO, "met": row["median"] <= LARGE_RATIO})
    return rows


def thread_seconds() -> dict[str, float]:
    """Processor seconds by thread (name and number) of this process."""
    spent = {}
    for task in Path("/proc/self/task").iterdir():
        name = (task / "comm").read_text().strip()
        spent[f"{name}:{task.name}"] = int((task / "schedstat").read_text().split()[0]) / 1e9
    return spent


def is_host(thread: str) -> bool:
    """The calling thread, or torch_npu's queue thread."""
    name, number = thread.rsplit(":", 1)
    return number == str(os.getpid()) or name == "acl_thread"


def tiny_batch(torch: Any) -> Callable[[int], None]:
    a, b = torch.ones(TINY, device="npu"), torch.ones(TINY, device="npu")

    def run(times: int) -> None:
        for _ in range(times):
            torch.add(a, b)
        torch.npu.synchronize()

    return run


def measure_tiny(rounds: int, batch: int) -> dict[str, Any]:
    from simnpu import calls

    run = tiny_batch(import_both())
    run(batch)
    shares, wholes, workers = [], [], []
    made: dict[str, int] = {}
    calls.reset()
    for _ in range(rounds):
        before = thread_seconds()
        run(batch)
        after = thread_seconds()
        spent = {thread: after[thread] - before.get(thread, 0.0) for thread in after}
        whole = sum(seconds for thread, seconds in spent.items() if is_host(thread)) / batch
        made = calls.counts()
        calls.reset()
        calls.time_calls(True)
        run(batch)
        calls.time_calls(False)
        # Waiting for the device at the end of the batch is no cost of issuing.
        inside = sum(n for name, n in calls.nanoseconds().items() if "Synchronize" not in name) / 1e9 / batch
        calls.reset()
        shares.append(inside / whole)
        wholes.append(whole)
        workers.append(sum(seconds for thread, seconds in spent.items() if thread.startswith("npu")) / batch)
    row = spread("tiny add, time", shares)
    return row | {
        "target": TINY_SHARE,
        "met": row["median"] <= TINY_SHARE,
        "host_seconds": statistics.median(wholes),
        "worker_seconds": statistics.median(workers),
        "calls": {name: count / batch for name, count in made.items() if "Synchronize" not in name},
    }


def run_under_callgrind(batch: int) -> None:
    run = tiny_batch(import_both())
    run(30)
    for command in ("-i on", None, "-d"):
        if command is None:
            run(batch)
        else:
            subprocess.run(
                ["callgrind_control", *command.split(), str(os.getpid())], check=True, stdout=subprocess.DEVNULL
            )
    sys.stdout.flush()
    os._exit(0)  # what is to be counted has been


def measure_start() -> dict[str, float]:
    import ctypes

    import torch

    # torch_npu's own libraries ask for these first; loading them here gives their cost apart from torch_npu's.
    before = time.process_time()
    for name in ("ascendcl", "hccl", "acl_op_compiler", "ge_runner", "graph", "acl_tdt_channel", "runtime"):
        ctypes.CDLL(f"lib{name}.so", mode=os.RTLD_GLOBAL | os.RTLD_LAZY)
    loading = time.process_time() - before
    from simnpu import calls

    calls.time_calls(True)
    before = time.process_time()
    import torch_npu  # noqa: F401

    importing = time.process_time() - before
    inside = sum(calls.nanoseconds().values()) / 1e9
    before = time.process_time()
    torch.npu.set_device(0)
    torch.add(torch.ones(TINY, device="npu"), 1)
    torch.npu.synchronize()
    return {
        "added": loading + inside,
        "loading": loading,
        "calls": inside,
        "torch_npu": importing,
        "first_operator": time.process_time() - before,
    }


# --- What runs outside -----------------------------------------------------------------------------------------------


def spread(name: str, values: list[float]) -> dict[str, Any]:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return {"name": name, "median": middle, "low": low, "high": high}


def child(*arguments: str, wrapper: tuple[str, ...] = ()) -> Any:
    """Runs a part of this file on the simulator; what it prints is its result. Raises CalledProcessError."""
    # torch would import torch_npu by itself, before the start-up of either could be told apart.
    environment = simnpu.environ(os.environ | ENVIRONMENT | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    command = [*wrapper, sys.executable, __file__, "--part", *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else None


SIMULATOR = re.compile(r"/lib(simnpu|opapi)\.so$")


def read_profile(text: str) -> tuple[int, int]:
    """Instructions of one thread in a callgrind profile: all, and those of calls from torch_npu into the simulator."""
    objects: dict[str, str] = {}

    def named(reference: str) -> str:
        number, _, name = reference.partition(" ")
        return objects.setdefault(number, name)

    whole = inside = 0
    caller = callee = ""
    is_call = False
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key == "ob":
            caller = callee = named(value)
        elif equals and key == "cob":
            callee = named(value)
        elif equals and key == "calls":
            is_call = True
        elif line[:1] and line[0] in "0123456789+-*":
            cost = int(line.split()[1])
            if not is_call:
                whole += cost
            elif caller.endswith("/libtorch_npu.so") and SIMULATOR.search(callee):
                inside += cost
            if is_call:
                is_call, callee = False, caller
    return whole, inside


def measure_instructions(batch: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="op-cost-") as directory:
        profile = Path(directory) / "profile"
        child(
            "callgrind",
            str(batch),
            wrapper=(
                *("valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes"),
                f"--callgrind-out-file={profile}",
            ),
        )
        threads = [read_profile(path.read_text()) for path in profile.parent.glob("profile.1-*")]
    # The threads that call the simulator are the calling thread and torch_npu's queue thread.
    host = [(whole, inside) for whole, inside in threads if inside]
    if not host:
        raise RuntimeError(
            "callgrind saw no call from libtorch_npu.so into the simulator; is this valgrind older than 3.15?"
        )
    whole, inside = sum(w for w, _ in host) / batch, sum(i for _, i in host) / batch
    row = spread("tiny add, instructions", [inside / whole])
    return row | {
        "target": TINY_SHARE,
        "met": row["median"] <= TINY_SHARE,
        "instructions": whole,
        "simulator_instructions": inside,
    }


def measure_build() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="op-cost-") as cache:
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "simnpu", "build"],
            env=os.environ | {"SIMNPU_CACHE": cache},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return spread("build from nothing", [seconds]) | {"target": BUILD_SECONDS, "met": seconds < BUILD_SECONDS}


def verdict(row: dict[str, Any]) -> str:
    return "met" if row["met"] else "MISSED"


def show_large(rows: list[dict[str, Any]]) -> None:
    head = f"{'large operator':24s} {'npu / cpu':>9s}  {'quartiles':>11s}  {'wall':>5s}  {'cpu ms':>7s}"
    print(f"{head}  target <= {LARGE_RATIO}")
    for row in rows:
        print(
            f"{row['name']:24s} {row['median']:9.2f}  {row['low']:5.2f} {row['high']:5.2f}  {row['wall']:5.2f}"
            f"  {row['cpu_seconds'] * 1e3:7.2f}  {verdict(row)}"
        )


def show_tiny(rows: list[dict[str, Any]]) -> None:
    print(f"\n{'tiny operator':24s} {'share':>9s}  {'quartiles':>11s}  target <= {TINY_SHARE}")
    for row in rows:
        if "instructions" in row:
            detail = f"{row['simulator_instructions']:.0f} of {row['instructions']:.0f} instructions"
        else:
            detail = (
                f"host {row['host_seconds'] * 1e6:.1f} us, worker {row['worker_seconds'] * 1e6:.1f} us, "
                f"{sum(row['calls'].values()):.0f} calls"
            )
        print(
            f"{row['name']:24s} {row['median']:9.1%}  {row['low']:5.1%} {row['high']:5.1%}  {verdict(row):6s}  {detail}"
        )


def show_seconds(rows: list[dict[str, Any]]) -> None:
    print(f"\n{'processor time':24s} {'seconds':>9s}  {'quartiles':>13s}  {'target':>7s}")
    for row in rows:
        judged = f"{row['target']:7.2f}  {verdict(row)}" if "target" in row else ""
        print(f"{row['name']:24s} {row['median']:9.4f}  {row['low']:6.4f} {row['high']:6.4f}  {judged}")


def part(name: str, numbers: list[int]) -> Any:
    """A measurement inside the child process; the result is JSON-able."""
    match name:
        case "large":
            return measure_large(*numbers)
        case "tiny":
            return measure_tiny(*numbers)
        case "start":
            return measure_start()
        case "callgrind":
            return run_under_callgrind(*numbers)
    raise SystemExit(f"op_cost.py: no part {name!r}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Ends with 0 whether targets are met or not, and with 1 if something could not be measured.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rounds and small tensors: checks the tool, measures nothing"
    )
    parser.add_argument("--build", action="store_true", help="also build the simulator from nothing (over a minute)")
    parser.add_argument("--no-instructions", action="store_true", help="do without valgrind though it is installed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        result = part(options.part[0], [int(number) for number in options.part[1:]])
        print(json.dumps(result))
        return 0

    def say(what: str) -> None:
        print(f"op_cost: {what}", file=sys.stderr, flush=True)

    try:
        say("large operators")
        large = child("large", *("3 1 65536" if options.quick else f"15 8 {LARGE}").split())
        say("tiny operator")
        tiny = [child("tiny", *("3 50" if options.quick else "40 500").split())]
        if (
            shutil.which("valgrind")
            and shutil.which("callgrind_control")
            and not (options.quick or options.no_instructions)
        ):
            say("tiny operator under callgrind (half a minute)")
            tiny.append(measure_instructions(200))
        say("start-up")
        starts = [child("start") for _ in range(2 if options.quick else 5)]
        names = {
            "added": "simulator, import",
            "torch_npu": "torch_npu, import",
            "first_operator": "first operator",
        }
        seconds = [spread(title, [start[key] for start in starts]) for key, title in names.items()]
        seconds[0] |= {"target": IMPORT_SECONDS, "met": seconds[0]["median"] <= IMPORT_SECONDS}
        if options.build:
            say("build from nothing")
            seconds.append(measure_build())
    except subprocess.CalledProcessError as error:
        print(f"op_cost: cannot measure: {error}. Remedy: see its output above", file=sys.stderr)
        return 1
    show_large(large)
    show_tiny(tiny)
    show_seconds(seconds)
    if options.json:
        options.json.write_text(json.dumps({"large": large, "tiny": tiny, "seconds": seconds}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
