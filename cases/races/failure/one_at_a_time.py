"""While a setup fails again and again, one thread at a time tries it, and the last try succeeds for all.

The first compile of a server is made by all its workers at once, on a machine that has a bad moment. Each of them gets
an error or a success; none is woken with nothing done, none waits for ever, and Dynamo stays usable. The thread that
tries is held until all others wait for it.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { by = ["setup", "import"] }
# timeout = 90
# releases = ">=2.7.1"
# ///

import importlib
import threading

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

THREADS, FAILURES = 4, 2
ENOUGH = 10  # a failure may be told to more than one thread
run_step = subject.setup_step
in_step, go_on = probe.gate("a try is in the step"), probe.gate("the others wait")
tally = threading.Lock()
running, most, tries = 0, 0, 0


class MadeToFail(Exception):
    pass


def step(name, setup):
    if name != "trace_rules":
        return run_step(name, setup)

    def fails_at_first():
        global running, most, tries  # noqa: PLW0603
        with tally:
            running, tries = running + 1, tries + 1
            most, turn = max(most, running), tries
        try:
            in_step.arrive()
            go_on.wait()
            if turn <= FAILURES:
                raise MadeToFail(f"try {turn}")
            setup()
        finally:
            with tally:
                running -= 1

    return run_step(name, fails_at_first)


def attempt():
    try:
        if probe.param("by") == "import":
            importlib.import_module("torch._dynamo")
        subject.dynamo_setup()
    except MadeToFail:
        return False
    return True


def work():
    """How many errors this thread has had before it could compile."""
    errors = 0
    while not attempt():
        errors += 1
        if errors == ENOUGH:
            raise AssertionError("the setup does not stop failing")
    return errors


with subject.replaced("setup_step", step):
    threads = [probe.thread(work)]
    in_step.wait(30)
    others = [probe.thread(work) for _ in range(THREADS - 1)]
    for thread in others:
        thread.reach(("acquire", "wait"), 30)
    go_on.arrive()
    errors = [thread.join(20) for thread in threads + others]

probe.check(sum(errors) > 0, "somebody has got the error", errors=errors)
probe.equal((tries, most), (FAILURES + 1, 1), "tries of the step, and how many ran at a time")
probe.check(subject.dynamo_setup.has_run, "the setup has run")
probe.equal(subject.times_of_trace_maps(), [1, 1, 1], "times of each trace map in torch's table")
compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
