"""When many threads start Dynamo setup at once, each step takes effect once, and each thread returns after the last.

Servers compile first in their workers, several at a time. A thread that goes on before the setup has finished traces
with half of the rules; a step that runs twice wraps what it has wrapped. The first thread is held in its first step
until all the others have come to wait for it.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { by = ["import", "setup", "entry_point", "list_backends"] }
# timeout = 90
# releases = ">=2.7.1"
# ///

import collections
import importlib
import sys

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

subject.fake_torchair()
graph = torch.fx.symbolic_trace(torch.nn.Identity())
run_step = subject.setup_step
applied = collections.Counter()
in_a_step, go_on = probe.gate("a thread is in its first step"), probe.gate("all the others have come to wait")


def counted_step(name, setup):
    def counted():
        applied[name] += 1
        setup()

    in_a_step.arrive()
    go_on.wait()
    run_step(name, counted)


def start():
    match probe.param("by"):
        case "import":
            importlib.import_module("torch._dynamo")
        case "setup":
            subject.dynamo_setup()
        case "entry_point":
            probe.same(subject.npu_entry_point(graph, []), graph, "what the backend returns")
        case "list_backends":
            torch.compiler.list_backends()
    seen = state()
    go_on.wait()  # so that a thread that has not waited for the first one is found here
    return seen


def state():
    """What a thread sees, without an import that would wait for others."""
    dynamo = sys.modules["torch._dynamo"]
    return {
        "setup has run": subject.dynamo_setup.has_run,
        "interface": "npu" in dynamo.device_interface.device_interfaces,
        "times of each trace map": subject.times_of_trace_maps(),
    }


with subject.replaced("setup_step", counted_step):
    threads = [probe.thread(start)]
    in_a_step.wait(30)
    others = [probe.thread(start) for _ in range(7)]
    for thread in others:
        thread.reach(("acquire", "wait"))
    go_on.arrive()
    states = [thread.join(timeout=30) for thread in threads + others]

finished = {"setup has run": True, "interface": True, "times of each trace map": [1, 1, 1]}
probe.equal(states, [finished] * 8, "what each thread sees when it returns")
probe.check({"backends", "trace_rules"} <= applied.keys(), "the steps were seen", steps=[*applied])
probe.equal(dict(applied), dict.fromkeys(applied, 1), "times that each step was applied")
probe.check({"npu", "npugraph_ex", "npugraphs"} <= {*torch.compiler.list_backends()}, "the NPU's backends are listed")
compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
