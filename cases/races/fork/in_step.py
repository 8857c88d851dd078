"""A child that a step of Dynamo setup forks can finish the setup, and no step takes effect twice in it.

A step may start a helper process, or load a library that does, and what it has done is in the child, finished or not.
The process is forked at each step, before the step's work, or after it and before anybody has noted that it is done.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { work = ["undone", "done"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib
import os

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

HANGS = 15.0  # seconds in which a child that can go on would have ended many times over
run_step, parent, seen = subject.setup_step, os.getpid(), []


def finish():
    importlib.import_module("torch._dynamo")
    subject.dynamo_setup()
    subject.check_setup()


def fork_at(name):
    probe.each([name], lambda _: probe.forked(finish, timeout=HANGS))


def step(name, setup):
    def forking():
        seen.append(name)
        if probe.param("work") == "undone":
            fork_at(name)
        setup()
        if probe.param("work") == "done":
            fork_at(name)

    run_step(name, forking if os.getpid() == parent else setup)


with subject.replaced("setup_step", step):
    probe.thread(importlib.import_module, "torch._dynamo").join()
probe.check({"backends", "trace_rules"} <= {*seen}, "the steps were seen", steps=seen)
subject.check_setup()
