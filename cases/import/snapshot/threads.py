"""Threads that use a part of torch_npu for the first time, at the same moment, all find it whole.

A service starts its workers right after the imports, and each of them opens a profiler or makes an optimizer. Where a
part loads with its first use, the second thread must wait for the first: a module that is half done has no such name
yet, and the worker ends with an AttributeError that comes once in a hundred starts.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { part = ["profiler", "optim", "contrib", "distributed.rendezvous", "distributed.tensor"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import operator
import sys
import threading

import torch_npu
from harness import probe

last_names = {
    "profiler": "tensorboard_trace_handler",
    "optim": "NpuFusedSGD",
    "contrib": "NpuCachedDropout",
    "distributed.rendezvous": "_create_parallel_handler",
    "distributed.tensor": "experimental",
}
part = probe.param("part")
path = f"{part}.{last_names[part]}"

sys.setswitchinterval(1e-5)
threads = 6
start = threading.Barrier(threads)
found, errors = [], []


def use() -> None:
    start.wait()
    try:
        found.append(operator.attrgetter(path)(torch_npu))
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")


workers = [threading.Thread(target=use) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
probe.equal(errors, [], f"errors of the threads that used torch_npu.{path} at the same moment")
probe.equal(len({id(each) for each in found}), 1, "how many different objects they got")
