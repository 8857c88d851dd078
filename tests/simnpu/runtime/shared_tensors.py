"""A program that hands NPU tensors and events to a spawned process and back, through torch.multiprocessing's queues.

A program of its own because the spawned process imports its main module.
"""

from __future__ import annotations

import gc
from typing import Any

import torch
import torch_npu  # noqa: F401
from torch import multiprocessing

SECONDS = 900


def work(tasks: Any, results: Any) -> None:
    tensor, view, parameter, event = tasks.get(timeout=SECONDS)
    event.wait()
    results.put((tensor.sum().item(), view.tolist(), parameter.requires_grad, type(parameter).__name__))
    tensor.fill_(5.0)
    torch.npu.synchronize()
    results.put("filled")
    results.put(torch.arange(4.0, device="npu") * 2)
    assert tasks.get(timeout=SECONDS) == "end"  # the tensor sent lives only as long as this process


def main() -> None:
    context = multiprocessing.get_context("spawn")
    tasks, results = context.Queue(), context.Queue()
    process = context.Process(target=work, args=(tasks, results))
    process.start()
    tensor = torch.arange(6.0, device="npu")
    parameter = torch.nn.Parameter(torch.ones(3, device="npu"))
    event = torch.npu.Event(interprocess=True)
    event.record()
    tasks.put((tensor, tensor[2:4], parameter, event))
    assert results.get(timeout=SECONDS) == (15.0, [2.0, 3.0], True, "Parameter")
    assert results.get(timeout=SECONDS) == "filled"
    assert tensor.tolist() == [5.0] * 6, "both processes see one memory"
    theirs = results.get(timeout=SECONDS)
    assert theirs.device.type == "npu"
    assert theirs.tolist() == [0.0, 2.0, 4.0, 6.0]
    del theirs
    gc.collect()
    tasks.put("end")
    process.join(SECONDS)
    assert process.exitcode == 0, process.exitcode
    print("handed over")


if __name__ == "__main__":
    main()
