"""After the parent has used the NPU, work on it in a forked child ends with an error that says to use spawn.

A device context does not survive a fork. Without the error the child hangs in a queue whose thread it has not got, or
goes on with a context that the driver does not know: a job that stands still, or wrong numbers, instead of one line
that tells what to change.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { fork = ["os_fork", "multiprocessing"], task_queue = ["0", "1"] }
# needs = ["ops"]
# timeout = 60
# releases = ">=2.7.1"
# ///

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness import probe

os.environ["TASK_QUEUE_ENABLE"] = probe.param("task_queue")

import torch
import torch_npu

x = torch.arange(3.0, device="npu")
probe.equal((x + 1).tolist(), [1.0, 2.0, 3.0], "x + 1 in the parent")
probe.check(torch.npu.is_initialized(), "the parent has the device")

WORK = {
    "a new tensor": lambda: torch.ones(3, device="npu").tolist(),
    "an old tensor": lambda: str((x + 1).tolist()),
    "a move to the NPU": lambda: torch.ones(3).npu().tolist(),
    "synchronize": torch.npu.synchronize,
    "a stream": lambda: str(torch.npu.Stream()),
}


def attempt(name):
    try:
        result = WORK[name]()
    except RuntimeError as error:
        # What a call of the device runtime says, when it fails later on, is the driver's affair; a real one hangs, too.
        told = "spawn" in str(error) and "error code" not in str(error)
        return "says spawn" if told else f"{type(error).__name__}: {error}"[:300]
    return f"no error: {result}"


def in_child(name):
    if probe.param("fork") == "os_fork":
        return probe.forked(attempt, name, timeout=10)
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(attempt, name).result(10)


found = {name: in_child(name) for name in WORK}
probe.equal(found, dict.fromkeys(WORK, "says spawn"), "what work on the NPU ends with in a child")
probe.equal((x + 1).tolist(), [1.0, 2.0, 3.0], "x + 1 in the parent, after the children")
