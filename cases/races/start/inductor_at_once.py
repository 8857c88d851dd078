"""Two children started at once by spawn or forkserver can both import torch_npu._inductor, with no cache there yet.

Tensor-parallel servers start their workers this way, and each imports the NPU's Inductor first of all. What the import
writes, caches and settings, the other one may be writing at the same moment.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { method = ["spawn", "forkserver"] }
# timeout = 240
# releases = ">=2.7.1"
# ///

import json
from pathlib import Path

from harness import probe

# A program of its own: multiprocessing imports the main program of the parent in a child.
PROGRAM = """
import json
import multiprocessing
import sys

sys.path.insert(0, "")  # where the worker is
import worker

context = multiprocessing.get_context(sys.argv[1])
barrier = context.Barrier(2)
with context.Pool(2, worker.begin, [barrier]) as pool:
    print(json.dumps(pool.map_async(worker.work, range(2), chunksize=1).get(180)))
"""
WORKER = """
import os

from harness import probe
from cases import _subject as subject


def begin(barrier):
    global meeting
    meeting = barrier
    probe.param("method")  # asked here so that the workers run what is judged, as the program does


def work(number):
    meeting.wait(60)  # so that each child does one piece of the work, and both import at once
    import torch
    import torch_npu._inductor

    return {
        "process": os.getpid(),
        "npu_backend": torch._inductor.config.npu_backend,
        "Dynamo setup has run": subject.dynamo_setup.has_run,
        "compiled x + 1": torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist(),
    }
"""
Path("worker.py").write_text(WORKER)
cold = {name: str(Path.cwd() / name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
done = probe.python(PROGRAM, probe.param("method"), env=cold, timeout=200)
found = json.loads(done.stdout.splitlines()[-1])
probe.equal(len({each.pop("process") for each in found}), 2, "processes that have worked")
expected = {"npu_backend": "default", "Dynamo setup has run": True, "compiled x + 1": [2.0, 2.0]}
probe.equal(found, [expected] * 2, "what each child finds")
