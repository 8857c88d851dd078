"""Children started by spawn and forkserver, two at once, import torch_npu, compile, and use the device.

These are the ways of starting that a program is sent to when it may not fork, and forkserver is Python's own choice
from 3.14 on. The parent has used the device, and two children import for the first time at the same moment.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { method = ["spawn", "forkserver"] }
# needs = ["ops"]
# timeout = 120
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

import torch
import torch_npu

torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2, device="npu")).tolist()
context = multiprocessing.get_context(sys.argv[1])
barrier = context.Barrier(2)
with context.Pool(2, worker.begin, [barrier]) as pool:
    print(json.dumps(pool.map_async(worker.work, range(2), chunksize=1).get(80)))
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
    import torch_npu

    before = subject.dynamo_setup.has_run
    found = {}
    for device in ("cpu", "npu"):
        compiled = torch.compile(lambda x: (x * x).sum() + 1, backend="aot_eager", fullgraph=True)
        found[device] = compiled(torch.arange(4.0, device=device)).item()
    ran = subject.dynamo_setup.has_run
    return {"process": os.getpid(), "setup had run": before, "setup has run": ran, **found}
"""
Path("worker.py").write_text(WORKER)
done = probe.python(PROGRAM, probe.param("method"), timeout=100)
found = json.loads(done.stdout.splitlines()[-1])
probe.equal(len({each.pop("process") for each in found}), 2, "processes that have worked")
expected = {"setup had run": False, "setup has run": True, "cpu": 15.0, "npu": 15.0}
probe.equal(found, [expected] * 2, "what each child finds")
