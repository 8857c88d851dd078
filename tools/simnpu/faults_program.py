"""The program into which tools/simnpu/faults.py injects faults: a bit of everything that reaches the device runtime.

Writes what each step computed, as a JSON line per step, to the file that is its argument.
"""

# pyright: reportAttributeAccessIssue=false, reportUnboundVariable=false
# torch.npu exists only once torch_npu is imported, and both are imported late so that a failing import is judged too.

from __future__ import annotations

import faulthandler
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STEPS: list[Callable[[], Any]] = []


def step(action: Callable[[], Any]) -> Callable[[], Any]:
    """Registers a step; what it returns must be the same in every undisturbed run."""
    STEPS.append(action)
    return action


@step
def count_devices() -> Any:
    return torch.npu.is_available(), torch.npu.device_count(), torch.npu.get_device_name(0)


@step
def allocate_and_copy() -> Any:
    tensor = torch.arange(8.0).npu()
    return tensor.cpu().tolist(), tensor.clone().tolist()


@step
def compute() -> Any:
    left = torch.arange(12.0, device="npu").reshape(3, 4)
    return (left * 2 + 1).tolist(), (left @ left.T).sum().item(), torch.cat([left, left]).shape[0], left.argmax().item()


@step
def learn() -> Any:
    weight = torch.ones(3, device="npu", requires_grad=True)
    (weight * torch.arange(3.0, device="npu")).sum().backward()
    assert weight.grad is not None
    return weight.grad.tolist()


@step
def draw() -> Any:
    torch.manual_seed(5)
    first = torch.rand(4, device="npu")
    torch.manual_seed(5)
    return torch.equal(first, torch.rand(4, device="npu"))


@step
def copy_pinned() -> Any:
    pinned = torch.arange(16, dtype=torch.int32).pin_memory()
    there = pinned.to("npu", non_blocking=True)
    back = torch.empty_like(pinned).pin_memory()
    back.copy_(there, non_blocking=True)
    torch.npu.synchronize()
    return back.tolist()


@step
def copy_to_the_other_device() -> Any:
    return torch.arange(5.0, device="npu:0").to("npu:1").tolist()


@step
def streams_and_events() -> Any:
    stream = torch.npu.Stream()
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    value = torch.zeros(4, device="npu")
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        start.record()
        value.add_(3)
        end.record()
    torch.npu.current_stream().wait_event(end)
    value.mul_(2)
    end.synchronize()
    stream.synchronize()
    return value.tolist(), end.query(), stream.query(), start.elapsed_time(end) >= 0


@step
def graph() -> Any:
    source, side = torch.ones(4, device="npu"), torch.npu.Stream()
    captured = torch.npu.NPUGraph()
    with torch.npu.graph(captured):
        result = source * 3
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            other = source + 1
        torch.npu.current_stream().wait_stream(side)
    source.fill_(2.0)
    captured.replay()
    torch.npu.synchronize()
    numbers = result.tolist(), other.tolist()
    captured.reset()
    return numbers


@step
def callback() -> Any:
    seen: list[str] = []
    called = threading.Event()

    def run(what: str) -> None:
        seen.append(what)
        called.set()

    stream = torch.npu.Stream()
    torch_npu.npu._subscribe_report(stream)
    torch_npu.npu._launch_host_func(stream, run, "called")
    stream.synchronize()
    called.wait(10)
    torch_npu.npu._unsubscribe_report(stream)
    return seen


@step
def show() -> Any:
    return repr(torch.arange(4.0, device="npu") / 3)


@step
def memory() -> Any:
    tensor = torch.ones(1 << 20, device="npu")
    before = torch.npu.memory_allocated()
    _free, total = torch.npu.mem_get_info()
    del tensor
    torch.npu.empty_cache()
    return before - torch.npu.memory_allocated(), total


def run() -> Iterator[tuple[str, Any]]:
    for action in STEPS:
        yield action.__name__, action()


if __name__ == "__main__":
    (report,) = sys.argv[1:]
    faulthandler.enable()  # a crash must tell where, and a hang, which is ended by SIGABRT
    import torch
    import torch_npu

    with Path(report).open("w", encoding="utf-8") as file:
        for name, value in run():
            file.write(json.dumps([name, value]) + "\n")
            file.flush()
        file.write(json.dumps(["end", None]) + "\n")
