"""When one step of Dynamo setup fails once, Dynamo stays usable and the retry runs that step and the later ones only.

A hiccup in one step (a file system, an interrupt) must not cost the process its compiler. Nor may the retry repeat what
is done already: a method wrapped twice calls itself, a table filled twice disagrees with itself. The process is
copied at each step; in the copy the step fails, while the original goes on to the next.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { during = ["import", "call"] }
# timeout = 300
# releases = ">=2.7.1"
# ///

import collections
import importlib
import json
import os
import sys
from unittest import mock

import torch
import torch_npu
from harness import probe
from torch_npu.utils import _dynamo as npu_dynamo

run_step = npu_dynamo._run_dynamo_setup_step
applied = collections.Counter()
outcomes = {}
copy_of_step = None  # (step that failed, descriptor for the outcome) in a copy


class MadeToFail(Exception):
    pass


def copy_and_fail(name, setup):
    global copy_of_step  # noqa: PLW0603

    def counted():
        setup()
        applied[name] += 1

    if copy_of_step is None:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            copy_of_step = name, writer
            raise MadeToFail(name)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            outcomes[name] = json.loads(pipe.read() or '"the copy ended without an outcome"')
        os.waitpid(child, 0)
    run_step(name, counted)


def setup_fails_or_not():
    if probe.param("during") == "import":
        import torch._dynamo
    else:
        npu_dynamo._lazy_dynamo_setup()


def outcome_of_the_rest():
    importlib.import_module("torch._dynamo")
    if probe.param("during") == "call":
        npu_dynamo._lazy_dynamo_setup()
    result = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)(torch.ones(2))
    interface = sys.modules["torch._dynamo.device_interface"].get_interface_for_device("npu")
    return {
        "compiled x + 1": result.tolist(),
        "devices of the interface": interface.device_count(),
        "setup has run": npu_dynamo._lazy_dynamo_setup.has_run,
        "times that steps were applied": sorted(set(applied.values())),
        "steps": len(applied),
    }


if probe.param("during") == "call":
    with mock.patch.object(npu_dynamo, "_lazy_dynamo_setup", lambda: None):
        import torch._dynamo

with mock.patch.object(npu_dynamo, "_run_dynamo_setup_step", copy_and_fail):
    try:
        setup_fails_or_not()
    except MadeToFail:
        if copy_of_step is None:
            raise
    if copy_of_step is not None:
        try:
            outcome = outcome_of_the_rest()
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}".splitlines()[0]
        with os.fdopen(copy_of_step[1], "w") as pipe:
            pipe.write(json.dumps(outcome))
        os._exit(0)

probe.check(
    {"device_interface", "backends", "trace_rules"} <= outcomes.keys(), "the steps were seen", steps=[*outcomes]
)
expected = {
    "compiled x + 1": [2.0, 2.0],
    "devices of the interface": torch_npu.npu.device_count(),
    "setup has run": True,
    "times that steps were applied": [1],
    "steps": len(outcomes),
}
wrong = {name: outcome for name, outcome in outcomes.items() if outcome != expected}
probe.check(not wrong, "after a failure in any one step a second try completes the setup", wanted=expected, **wrong)
