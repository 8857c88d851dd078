"""A step of Dynamo setup may import Dynamo, call the setup or ask for a backend, and the setup ends as without it.

Steps import modules of torch_npu, which import Dynamo and call the setup themselves. A thread that waits for itself
hangs; one that starts over runs steps twice. Before and after the work of each step the same thread triggers the setup
in every way.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { by = ["import", "entry_point"] }
# timeout = 90
# releases = ">=2.7.1"
# ///

import collections
import importlib

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

subject.fake_torchair()
graph = torch.fx.symbolic_trace(torch.nn.Identity())
run_step = subject.setup_step
applied = collections.Counter()
triggers = {
    "import": lambda: importlib.import_module("torch._dynamo"),
    "setup": subject.dynamo_setup,
    "entry_point": lambda: subject.npu_entry_point(graph, []),
}


def step(name, setup):
    def counted():
        for trigger in triggers.values():
            trigger()
        applied[name] += 1
        setup()
        for trigger in triggers.values():
            trigger()

    run_step(name, counted)


with subject.replaced("setup_step", step):
    probe.thread(triggers[probe.param("by")]).join(30)

probe.check(subject.dynamo_setup.has_run, "the setup has run")
probe.check({"backends", "trace_rules"} <= applied.keys(), "the steps were seen", steps=[*applied])
probe.equal(dict(applied), dict.fromkeys(applied, 1), "times that each step was applied")
probe.check({"npu", "npugraph_ex", "npugraphs"} <= {*torch.compiler.list_backends()}, "the NPU's backends are listed")
compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
