"""A thread that imports Dynamo and one that runs its setup both come to an end, and the import returns after the setup.

A worker imports a library that needs torch._dynamo while another one compiles. Between the end of Dynamo's body and its
hook lies a moment in which the importer holds Python's lock of the module, and the other thread, inside the setup, may
ask for it: both wait for ever, or one goes on with half a setup. Both orders are forced: `body_first` holds the
importer after the body, by the loader of a finder, and `setup_first` the other thread before its second half.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["body_first", "setup_first"], other = ["setup", "entry_point"] }
# timeout = 90
# releases = ">=2.7.1"
# ///

import sys
from importlib.machinery import PathFinder

from harness import probe
from cases import _subject as subject

body_executed, hook_may_run = probe.gate("the body of Dynamo is executed"), probe.gate("the importer may go on")
in_a_step, go_on = probe.gate("the other thread is in a step"), probe.gate("the importer waits, or has returned")
BLOCKED = ("acquire", "wait")
HANGS = 10.0  # seconds in which a thread that can go on would have ended many times over


class Held:
    """Serves Dynamo; holds its importer when the body is done."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch._dynamo":
            return None
        spec = PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def execute_and_wait(module):
            execute(module)
            body_executed.arrive()
            hook_may_run.wait()

        spec.loader.exec_module = execute_and_wait
        return spec


import torch

if probe.param("order") == "body_first":
    sys.meta_path.insert(0, Held())  # before torch_npu's, which has to ask it

import torch_npu

subject.fake_torchair()
graph = torch.fx.symbolic_trace(torch.nn.Identity())
run_step = subject.setup_step


def held_step(name, setup):
    if name == "backends":
        in_a_step.arrive()
        go_on.wait()
    run_step(name, setup)


def state():
    """What a thread sees, without an import that would wait for others."""
    dynamo = sys.modules["torch._dynamo"]
    return {
        "setup has run": subject.dynamo_setup.has_run,
        "interface": "npu" in dynamo.device_interface.device_interfaces,
        "times of each trace map": subject.times_of_trace_maps(),
    }


def importer():
    import torch._dynamo

    seen = state()
    go_on.wait()  # one that has not waited in the import is found here
    return seen


def other():
    if probe.param("other") == "setup":
        subject.dynamo_setup()
    else:
        probe.same(subject.npu_entry_point(graph, []), graph, "what the backend returns")
    hook_may_run.wait()


if probe.param("order") == "body_first":
    first = probe.thread(importer)
    body_executed.wait()
    go_on.arrive()
    second = probe.thread(other)
    second.reach(BLOCKED)
    hook_may_run.arrive()
else:
    hook_may_run.arrive()
    with subject.replaced("setup_step", held_step):
        second = probe.thread(other)
        in_a_step.wait()
        first = probe.thread(importer)
        first.reach(BLOCKED)
        go_on.arrive()
        second.join(HANGS)

seen = first.join(HANGS)
second.join(HANGS)
finished = {"setup has run": True, "interface": True, "times of each trace map": [1, 1, 1]}
probe.equal(seen, finished, "what the importer sees when `import torch._dynamo` returns")
probe.equal(state(), finished, "the state when both have ended")
compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
