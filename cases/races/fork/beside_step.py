"""A child forked while another thread is in a step of Dynamo setup can finish the setup: no lock is left behind.

A data loader forks its workers while another thread compiles for the first time. The thread that runs the setup is not
there in the child, but its locks are, and what it has done; no step may take effect twice. The process is forked at
each step, before the step's work, or after it and before anybody has noted that it is done. An implementation may also
make the fork wait for the setup's end.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { setup_by = ["call", "import"], work = ["undone", "done"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib
import os
import queue
import threading

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

PATIENCE = 5.0  # seconds after which a fork that has not been made is taken to wait for the setup
HANGS = 15.0  # seconds in which a child that can go on would have ended many times over
run_step, parent, seen = subject.setup_step, os.getpid(), []
stops = queue.SimpleQueue()  # steps at which the setup's thread has come to a stop; None at the end
forked, go_on = threading.Event(), threading.Event()
os.register_at_fork(after_in_parent=forked.set)
fork_waits = False


def finish():
    importlib.import_module("torch._dynamo")
    subject.dynamo_setup()
    subject.check_setup()


def stop(name):
    """In the setup's thread: let the process be forked here."""
    global fork_waits  # noqa: PLW0603
    seen.append(name)
    if not fork_waits:
        forked.clear()
        go_on.clear()
        stops.put(name)
        fork_waits = not forked.wait(PATIENCE)
        if not fork_waits:
            go_on.wait()


def step(name, setup):
    def stopping():
        if probe.param("work") == "undone":
            stop(name)
        setup()
        if probe.param("work") == "done":
            stop(name)

    run_step(name, stopping if os.getpid() == parent else setup)


def run_setup():
    try:
        importlib.import_module("torch._dynamo") if probe.param("setup_by") == "import" else subject.dynamo_setup()
    finally:
        stops.put(None)


with subject.replaced("setup_step", step):
    thread = probe.thread(run_setup)
    while (name := stops.get(timeout=90)) is not None:
        probe.each([name], lambda _: probe.forked(finish, timeout=HANGS))
        go_on.set()
    thread.join(30)
probe.check({"backends", "trace_rules"} <= {*seen}, "the steps were seen", steps=seen)
subject.check_setup()
