"""After the parent has used the NPU, a forked child can work on the CPU, ask for devices, seed, and load data.

Data loaders fork, and their workers seed and ask before they touch a tensor. What forbids work on the NPU in such a
child must not reach any other work.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { fork = ["os_fork", "multiprocessing"], task_queue = ["0", "1"] }
# needs = ["ops"]
# timeout = 90
# releases = ">=2.7.1"
# ///

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness import probe

os.environ["TASK_QUEUE_ENABLE"] = probe.param("task_queue")

import torch
import torch_npu

device_count = torch.npu.device_count()
x = torch.arange(3.0, device="npu")
probe.equal((x + 1).tolist(), [1.0, 2.0, 3.0], "x + 1 in the parent")


def in_child():
    torch.manual_seed(7)
    first = torch.rand(2)
    torch.manual_seed(7)
    w = torch.ones(3, 3, requires_grad=True)
    return {
        "is_available": torch.npu.is_available(),
        "device_count": torch.npu.device_count(),
        "is_initialized": torch.npu.is_initialized(),
        "seeded alike": torch.equal(first, torch.rand(2)),
        "product": (w @ torch.ones(3)).tolist(),
        "compiled x + 1": torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist(),
    }


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor(float(index)) ** 2


def loaded(pin_memory):
    loader = torch.utils.data.DataLoader(
        Squares(), 4, num_workers=2, pin_memory=pin_memory, multiprocessing_context="fork", timeout=20
    )
    batches = [batch.to("npu", non_blocking=True) for batch in loader]
    return torch.cat(batches).tolist()


if probe.param("fork") == "os_fork":
    found = probe.forked(in_child, timeout=20)
else:
    for pin_memory in (False, True):
        for epoch in range(2):
            data = loaded(pin_memory)
            probe.equal(data, [float(i * i) for i in range(8)], f"data of epoch {epoch} with {pin_memory=}")
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        found = pool.submit(in_child).result(20)
expected = {
    "is_available": True,
    "device_count": device_count,
    "is_initialized": False,
    "seeded alike": True,
    "product": [3.0] * 3,
    "compiled x + 1": [2.0, 2.0],
}
probe.equal(found, expected, "what the child finds")
probe.equal((x + 1).tolist(), [1.0, 2.0, 3.0], "x + 1 in the parent, after the children")
