"""The program that tools/simnpu/stress.py runs for minutes: threads use the device in every way at once and check
each number.

Writes a JSON line per sample, per finding and at the end to the file descriptor that it is given.
"""

# pyright: reportAttributeAccessIssue=false
# torch.npu exists only once torch_npu is imported, which a type checker cannot know.

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import gc
import importlib.util
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch
import torch_npu

from simnpu import calls

THREADS = 4
STEPS = 6  # scenarios per thread and round
SWITCH_SECONDS = 1e-6  # the interpreter changes threads as often as it can
LARGE = 1 << 20
POOL = 32  # streams that torch makes per device and priority

# One at a time: torch's allocator takes one capture at a time, and must not give memory back while there is one. Nor
# may a callback in Python wait for its turn then: empty_cache() waits for the device and keeps the interpreter lock
# meanwhile, so the callback cannot run, nor the device get any further.
ALONE = threading.Lock()
QUEUE_OFF = os.environ.get("TASK_QUEUE_ENABLE") == "0"
# Each thread's streams. torch hands out a limited number in turn, so that two threads that ask for new ones soon share
# one; then the one's capture takes in what the other does.
STREAMS: list[list[Any]] = []

# Per device a stream whose callbacks a thread of torch_npu runs. Subscribed once: torch_npu starts a thread for each
# subscription and never joins it, so the thread's stack stays mapped for ever.
CALLBACK_STREAMS: list[Any] = []

# What is made and ended by calls of their own: each kind's live number is made minus ended. Calls that fail count as
# well, so memory, which is refused now and then, is judged by the device's own figures.
MADE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "streams": (
        ("aclrtCreateStream", "aclrtCreateStreamWithConfig"),
        ("aclrtDestroyStream", "aclrtDestroyStreamForce"),
    ),
    "events": (("aclrtCreateEvent", "aclrtCreateEventWithFlag", "aclrtCreateEventExWithFlag"), ("aclrtDestroyEvent",)),
    "graphs": (("aclmdlRICaptureBegin",), ("aclmdlRIDestroy",)),
    "pinned allocations": (("aclrtMallocHost",), ("aclrtFreeHost",)),
    "mappings": (("aclrtMapMem",), ("aclrtUnmapMem",)),
    "reserved ranges": (("aclrtReserveMemAddress",), ("aclrtReleaseMemAddress",)),
    "subscriptions": (("aclrtSubscribeReport",), ("aclrtUnSubscribeReport",)),
}


@dataclass
class Place:
    """Where a scenario runs: the thread's device, streams of its own, and its own random numbers."""

    device: int
    stream: Any  # the current one
    sides: list[Any]  # others
    random: random.Random
    checks: int = 0

    @property
    def other(self) -> int:
        return (self.device + 1) % torch.npu.device_count()

    def check(self, actual: Any, expected: Any, what: str) -> None:
        """Raises AssertionError unless both are equal; counts the check."""
        self.checks += 1
        equal = torch.equal(actual, expected) if isinstance(actual, torch.Tensor) else actual == expected
        if not equal:
            raise AssertionError(f"{what}: {actual} instead of {expected}")

    def numbers(self, *shape: int) -> torch.Tensor:
        """Small whole numbers on the host, so that sums and products in float32 are exact."""
        generator = torch.Generator().manual_seed(self.random.getrandbits(32))
        return torch.randint(-8, 9, shape, generator=generator).float()


def compute(place: Place) -> None:
    left, right = place.numbers(17, 31), place.numbers(31, 13)
    there = left.npu() @ right.npu()
    place.check(there.cpu(), left @ right, "product")
    place.check((there.sum(0) * 2 - 1).cpu(), (left @ right).sum(0) * 2 - 1, "sums")
    place.check(torch.cat([there, there]).argmax().item(), (left @ right).argmax().item(), "largest")


def learn(place: Place) -> None:
    inputs, weight = place.numbers(5, 3), place.numbers(3, 2)
    gradients = []
    for device in ("cpu", "npu"):
        leaf = weight.to(device, copy=True).requires_grad_()
        (inputs.to(device) @ leaf).relu().sum().backward()
        assert leaf.grad is not None
        gradients.append(leaf.grad.cpu())
    place.check(gradients[1], gradients[0], "gradient")


def streams_and_events(place: Place) -> None:
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    value = torch.zeros(64, device="npu")
    start.record()
    previous, expected = torch.npu.current_stream(), 0.0
    for _ in range(12):
        stream, step = place.random.choice(place.sides), place.random.randrange(1, 4)
        stream.wait_stream(previous)
        with torch.npu.stream(stream):
            value.mul_(2).add_(step)
        value.record_stream(stream)
        expected = expected * 2 + step
        previous = stream
    torch.npu.current_stream().wait_stream(previous)
    end.record()
    place.check(value.cpu(), torch.full((64,), expected), "chain over streams")
    end.synchronize()
    place.check((end.query(), start.elapsed_time(end) >= 0), (True, True), "events")


def allocate_and_free(place: Place) -> None:
    kept: dict[int, torch.Tensor] = {}
    for number in range(24):
        kept[number] = torch.full((place.random.choice([1, 100, 5000, LARGE]),), float(number), device="npu")
        if len(kept) > 5:
            gone = place.random.choice(list(kept))
            place.check(kept.pop(gone).mean().item(), float(gone), "contents of an allocation")
    if place.random.random() < 0.3:
        with ALONE:
            torch.npu.empty_cache()
    for number, tensor in kept.items():
        place.check((tensor[0].item(), tensor[-1].item()), (float(number), float(number)), "contents")


def too_large(place: Place) -> None:
    _free, total = torch.npu.mem_get_info()
    refused = False
    with ALONE:
        try:
            torch.empty(total + 1, dtype=torch.uint8, device="npu")
        except torch.OutOfMemoryError:
            refused = True
    place.check(refused, True, "an allocation above the capacity raises OutOfMemoryError")
    place.check(torch.ones(8, device="npu").sum().item(), 8.0, "the allocation after it")


def pinned_copies(place: Place) -> None:
    source = place.numbers(place.random.choice([10, 3000, 100_000])).pin_memory()
    back = torch.empty_like(source).pin_memory()
    there = source.to("npu", non_blocking=True)
    back.copy_(there + 1, non_blocking=True)
    done = torch.npu.current_stream().record_event()
    done.synchronize()
    place.check(back, source + 1, "copies from and to pinned memory")


def copies_between_devices(place: Place) -> None:
    values = place.numbers(2000)
    # With its task queue on, torch_npu gives the event of a copy back to its pool before the queue has recorded it and
    # waited for it: two threads that copy at once then wait for each other's recording, and may read old numbers.
    with contextlib.nullcontext() if QUEUE_OFF else ALONE:
        here = values.npu()
        for _ in range(3):
            there = here.to(f"npu:{place.other}")
            here = (there + 1).to(f"npu:{place.device}")
        place.check(here.cpu(), values + 3, "copies between the devices")


def callbacks(place: Place) -> None:
    seen: list[int] = []
    stream = CALLBACK_STREAMS[place.device]
    value = torch.zeros(4, device="npu")
    stream.wait_stream(torch.npu.current_stream())
    with ALONE, torch.npu.stream(stream):
        for number in range(5):
            value.add_(1)
            torch_npu.npu._launch_host_func(stream, seen.append, number)
        stream.synchronize()
    place.check(seen, list(range(5)), "callbacks in order")
    place.check(value.tolist(), [5.0] * 4, "work between callbacks")


def graph(place: Place) -> None:
    source, side = torch.zeros(100, device="npu"), place.random.choice(place.sides)
    captured = torch.npu.NPUGraph()
    with ALONE, torch.npu.graph(captured, stream=place.stream, capture_error_mode="thread_local"):
        doubled = source * 2
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            result = doubled + 1
        torch.npu.current_stream().wait_stream(side)
    for _ in range(4):
        number = float(place.random.randrange(1000))
        source.fill_(number)
        captured.replay()
        place.check(result.cpu(), torch.full((100,), 2 * number + 1), "replay")
    with ALONE:
        captured.reset()


def streams_made_and_destroyed(place: Place) -> None:
    # torch keeps its streams for ever. Those of other code come and go, each with a thread in the simulator.
    library = ctypes.CDLL("libascendcl.so")
    value = torch.ones(1000, dtype=torch.uint8, device="npu")
    torch.npu.current_stream().synchronize()
    place_of_stream, size = ctypes.c_void_p(), ctypes.c_size_t(1000)
    codes = []
    for number in range(4):
        codes.append(library.aclrtCreateStream(ctypes.byref(place_of_stream)))
        codes.append(library.aclrtMemsetAsync(ctypes.c_void_p(value.data_ptr()), size, number, size, place_of_stream))
        codes.append(library.aclrtSynchronizeStream(place_of_stream))
        codes.append(library.aclrtDestroyStream(place_of_stream))
        place.check(value.sum().item(), 1000 * number, "bytes set on a stream of other code")
    place.check(codes, [0] * len(codes), "codes of calls")


Scenario = Callable[[Place], None]
SCENARIOS: list[Scenario] = [
    compute,
    learn,
    streams_and_events,
    allocate_and_free,
    too_large,
    pinned_copies,
    copies_between_devices,
    callbacks,
    graph,
    streams_made_and_destroyed,
]


@dataclass
class Round:
    """What the threads of a round did, and what went wrong first."""

    number: int
    checks: int = 0
    failure: str | None = None
    ran: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, seed: int, number: int, scenarios: list[Scenario]) -> None:
        choose = random.Random(f"{seed} {self.number} {number}")
        name = "the start"
        try:
            torch.npu.set_device(number % torch.npu.device_count())
            stream, *sides = STREAMS[number]
            place = Place(number % torch.npu.device_count(), stream, sides, choose)
            with torch.npu.stream(place.stream):
                for _ in range(STEPS):
                    scenario = choose.choice(scenarios)
                    name = scenario.__name__
                    scenario(place)
                    with self.lock:
                        self.ran[name] += 1
                place.stream.synchronize()
            with self.lock:
                self.checks += place.checks
        except BaseException:
            with self.lock:
                text = f"{name}, thread {number}, round {self.number}:\n{traceback.format_exc()}"
                self.failure = self.failure or text

    def run(self, seed: int, scenarios: list[Scenario]) -> None:
        threads = [
            threading.Thread(target=self.work, args=(seed, number, scenarios), name=f"stress-{number}")
            for number in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def take_streams() -> None:
    """Fills STREAMS and CALLBACK_STREAMS, each stream once."""
    taken: set[Any] = set()

    def another(device: int, priority: int = 0) -> Any:
        while (stream := torch.npu.Stream(device=device, priority=priority)) in taken:
            pass
        taken.add(stream)
        return stream

    devices = torch.npu.device_count()
    STREAMS.extend([another(number % devices, priority) for priority in (0, 0, -1, 0)] for number in range(THREADS))
    for device in range(devices):
        CALLBACK_STREAMS.append(another(device))
        torch_npu.npu._subscribe_report(CALLBACK_STREAMS[device])


def use_every_stream() -> None:
    """Runs something on each stream of torch's pools, with memory from both of the allocator's pools.

    A stream's thread in the simulator starts with its first task, and a stream's memory comes with its first tensors.
    """
    for device in range(torch.npu.device_count()):
        with torch.npu.device(device):
            for priority in (0, -1):
                for _ in range(POOL):
                    with torch.npu.stream(torch.npu.Stream(priority=priority)):
                        torch.ones(8, device="npu").add_(1)
                        torch.empty(LARGE, device="npu")
        torch.npu.synchronize(device)


def live_handles() -> dict[str, int]:
    made = calls.counts()
    return {
        kind: sum(made.get(name, 0) for name in begins) - sum(made.get(name, 0) for name in ends)
        for kind, (begins, ends) in MADE.items()
    }


def sample(process: psutil.Process, trim: Callable[[int], int]) -> dict[str, Any]:
    """What the process holds while nothing runs and every cache has been emptied."""
    gc.collect()
    devices = range(torch.npu.device_count())
    for device in devices:
        torch.npu.synchronize(device)
    torch.npu.empty_cache()
    gc.collect()
    trim(0)
    used = 0
    for device in devices:
        with torch.npu.device(device):
            free, total = torch.npu.mem_get_info()
            used += total - free
    return {
        "allocated": sum(torch.npu.memory_allocated(device) for device in devices),
        "resident bytes": process.memory_info().rss,
        "file descriptors": process.num_fds(),
        "threads": process.num_threads(),
        "mapped regions": Path("/proc/self/maps").read_bytes().count(b"\n"),
        "device bytes": used,
        **{f"live {kind}": number for kind, number in live_handles().items()},
    }


def load(path: Path) -> list[Scenario]:
    """The functions of the file whose names begin with stress_. Raises SystemExit if there is none."""
    spec = importlib.util.spec_from_file_location("stress_scenarios", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"error: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: list[Any] = [value for name, value in vars(module).items() if name.startswith("stress_") and callable(value)]
    if not found:
        raise SystemExit(f"error: {path} has no function stress_…(place)")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Part of tools/simnpu/stress.py, which says what it does.")
    parser.add_argument("--report-fd", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--every", type=float, required=True, help="seconds between samples; 0: after every round")
    parser.add_argument("--also", type=Path)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    scenarios = SCENARIOS + (load(options.also) if options.also else [])
    if unknown := set(options.only) - {scenario.__name__ for scenario in scenarios}:
        names = ", ".join(scenario.__name__ for scenario in scenarios)
        raise SystemExit(f"error: no scenario {', '.join(sorted(unknown))}. There are: {names}")
    if options.only:
        scenarios = [scenario for scenario in scenarios if scenario.__name__ in options.only]

    sys.setswitchinterval(SWITCH_SECONDS)
    torch.set_num_threads(1)
    torch.npu.init()
    use_every_stream()
    take_streams()
    # What has been imported lives to the end. Looking through it at every sample took most of a short run's time.
    gc.freeze()
    trim = ctypes.CDLL(None).malloc_trim
    process = psutil.Process()
    checks, ran, latest = 0, Counter(), -options.every
    start = time.monotonic()
    with os.fdopen(options.report_fd, "w", encoding="utf-8") as report:

        def tell(**what: Any) -> None:
            report.write(json.dumps(what) + "\n")
            report.flush()

        number = 0
        while True:
            current = Round(number)
            current.run(options.seed, scenarios)
            number += 1
            checks += current.checks
            ran += current.ran
            if current.failure:
                tell(event="failed", text=current.failure)
                return 1
            seconds = time.monotonic() - start
            over = number >= options.rounds if options.rounds is not None else seconds >= options.seconds
            progress = {"rounds": number, "checks": checks, "seconds": round(seconds, 3)}
            if over or seconds - latest >= options.every:
                latest = seconds
                tell(event="sample", **progress, values=sample(process, trim))
            else:
                tell(event="round", **progress)
            if over:
                tell(event="end", **progress, ran=dict(ran), calls=sum(calls.counts().values()))
                return 0


if __name__ == "__main__":
    # The parent may be interrupted, and then ends this process itself.
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
