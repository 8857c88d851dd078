"""A tensor of the parent on the NPU that a forked child reads ends with an error that says to use spawn.

Handing a device tensor to a worker is the usual form of the mistake. Numbers from a context that is not the child's, or
the driver's number for a missing context, do not tell what to change.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = { fork = ["os_fork", "multiprocessing"] }
# needs = ["ops"]
# timeout = 60
# releases = ">=2.7.1"
# ///

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness import probe

import torch
import torch_npu

x = torch.arange(3.0, device="npu")
probe.equal((x + 1).tolist(), [1.0, 2.0, 3.0], "x + 1 in the parent")

READS = {
    "cpu": lambda: x.cpu().tolist(),
    "tolist": x.tolist,
    "item": lambda: float(x[1].item()),
    "repr": lambda: repr(x),
    "copy_": lambda: torch.zeros(3).copy_(x).tolist(),
    "pickle": lambda: len(pickle.dumps(x)),
}


def attempt(name):
    try:
        result = READS[name]()
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


found = {name: in_child(name) for name in READS}
probe.equal(found, dict.fromkeys(READS, "says spawn"), "what reading ends with in a child")
probe.equal(x.tolist(), [0.0, 1.0, 2.0], "x in the parent, after the children")
