"""A child forked in the middle of Dynamo setup can finish it: no lock is left behind, and no step takes effect twice.

A data loader forks its workers while another thread compiles for the first time. The thread that runs the setup is not
there in the child, but its locks are, and what it has done. The process is forked at each step, before the step's work
or after it and before anybody has noted that it is done. An implementation may also make the fork wait for the setup's
end.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { forked_by = ["bystander_of_call", "bystander_of_import", "importer"], work = ["undone", "done"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib
import os
import queue
import sys
import threading
from types import SimpleNamespace
from unittest import mock

import torch
import torch_npu
from harness import probe
from torch_npu.utils import _dynamo as npu_dynamo

PATIENCE = 5.0  # seconds after which a fork that has not been made is taken to wait for the setup
HANGS = 15.0  # seconds in which a child that can go on would have ended many times over
sys.modules["torchair"] = SimpleNamespace(get_npu_backend=lambda **_: lambda graph, *_: graph)
graph = torch.fx.symbolic_trace(torch.nn.Identity())
MAPS = (
    "torch_non_c_binding_in_graph_functions_npu",
    "torch_c_binding_in_graph_functions_npu",
    "skip_functions_npu",
)
run_step = npu_dynamo._run_dynamo_setup_step
parent, stops, wrong, seen = os.getpid(), queue.SimpleQueue(), {}, []
made, go_on = {}, {}
waits = False  # a fork that waits for the setup


class Pair:
    def __init__(self, x):
        self.x = x


def use():
    """Finish the setup and use it; what is wrong then."""
    importlib.import_module("torch._dynamo")
    npu_dynamo._lazy_dynamo_setup()
    same = torch_npu.dynamo._npu_backend_entrypoint(graph, []) is graph
    # Making an object goes through the methods that steps have wrapped.
    compiled = torch.compile(lambda x: Pair(x).x + 1, backend="eager", fullgraph=True)
    rules, dynamo = sys.modules["torch_npu.dynamo.trace_rule"], sys.modules["torch._dynamo"]
    table = dynamo.trace_rules.torch_name_rule_map
    found = {
        "the entry point returns what its backend does": same,
        "compiled x + 1": compiled(torch.ones(2)).tolist(),
        "setup has run": npu_dynamo._lazy_dynamo_setup.has_run,
        "times of each trace map": [sum(each is getattr(rules, name) for each in table) for name in MAPS],
        "backends": sorted({"npu", "npugraph_ex", "npugraphs"} & {*torch.compiler.list_backends()}),
        "autocast": repr(dynamo.variables.UserDefinedClassVariable(torch_npu.npu.amp.autocast)).partition("(")[0],
    }
    return {name: value for name, value in found.items() if value != EXPECTED[name]}


def use_or_error():
    try:
        return use()
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]


EXPECTED = {
    "the entry point returns what its backend does": True,
    "compiled x + 1": [2.0, 2.0],
    "setup has run": True,
    "times of each trace map": [1, 1, 1],
    "backends": ["npu", "npugraph_ex", "npugraphs"],
    "autocast": "TorchCtxManagerClassVariable",
}


def fork_at(name):
    found = probe.forked(use_or_error, timeout=HANGS)
    if found:
        wrong[name] = found


def stop(name):
    """Let the process be forked here."""
    global waits  # noqa: PLW0603
    seen.append(name)
    if probe.param("forked_by") == "importer":
        fork_at(name)
    elif not waits:
        made[name], go_on[name] = threading.Event(), threading.Event()
        stops.put(name)
        if made[name].wait(PATIENCE):
            go_on[name].wait()
        else:
            waits = True


def step(name, setup):
    if os.getpid() != parent:
        return run_step(name, setup)

    def stopped():
        if probe.param("work") == "undone":
            stop(name)
            setup()
        else:
            setup()
            stop(name)

    return run_step(name, stopped)


def run_setup():
    try:
        if probe.param("forked_by") == "bystander_of_call":
            npu_dynamo._lazy_dynamo_setup()
        else:
            importlib.import_module("torch._dynamo")
    finally:
        stops.put(None)


with mock.patch.object(npu_dynamo, "_run_dynamo_setup_step", step):
    thread = probe.thread(run_setup)
    while (at := stops.get(timeout=90)) is not None:  # all children of an importer in one go
        os.register_at_fork(after_in_parent=made[at].set)
        fork_at(at)
        go_on[at].set()
    thread.join(30)

probe.check({"backends", "trace_rules"} <= {*seen}, "the steps were seen", steps=seen)
probe.check(not wrong, "a child forked at any step can finish the setup and use it", expected=EXPECTED, **wrong)
probe.equal(use(), {}, "what is wrong in the parent")
