"""When one step of Dynamo setup fails once, Dynamo stays usable and the retry runs that step and the later ones only.

A hiccup in one step (a file system, an interrupt) must not cost the process its compiler. Nor may the retry repeat what
is done already: a method wrapped twice calls itself, a table filled twice disagrees with itself. Each step fails in
a copy of the process of its own.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { during = ["import", "call"] }
# timeout = 300
# releases = ">=2.7.1"
# ///

import collections
import contextlib
import importlib
import sys

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

run_step = subject.setup_step


class MadeToFail(Exception):
    pass


def trigger():
    importlib.import_module("torch._dynamo")
    if probe.param("during") == "call":
        subject.dynamo_setup()


def names_of_steps():
    names = []
    with subject.replaced("setup_step", lambda name, setup: (names.append(name), run_step(name, setup))):
        trigger()
    return list(dict.fromkeys(names))  # a setup may come by a step again, and skip it


def fails_once_in(failing):
    tried, applied = collections.Counter(), collections.Counter()

    def step(name, setup):
        def counted():
            setup()
            applied[name] += 1

        tried[name] += 1
        if name == failing and tried[name] == 1:
            raise MadeToFail(name)
        run_step(name, counted)

    with subject.replaced("setup_step", step):
        with contextlib.suppress(MadeToFail):  # the import may also keep it for the first use
            trigger()
        trigger()
        compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
        probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
    interface = sys.modules["torch._dynamo.device_interface"].get_interface_for_device("npu")
    probe.equal(interface.device_count(), torch_npu.npu.device_count(), "devices of the interface")
    probe.check(subject.dynamo_setup.has_run, "the setup has run")
    probe.equal(dict(applied), dict.fromkeys(STEPS, 1), "times that each step was applied")


if probe.param("during") == "call":
    with subject.replaced("dynamo_setup", lambda: None):
        import torch._dynamo
STEPS = probe.forked(names_of_steps)
probe.check({"device_interface", "backends", "trace_rules"} <= {*STEPS}, "the steps were seen", steps=STEPS)
probe.each(STEPS, fails_once_in, forked=True)
