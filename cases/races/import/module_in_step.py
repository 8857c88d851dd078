"""A step that imports a module, and another thread that imports it while its body calls the setup, both come to an end.

Modules that steps of the setup import need the setup themselves. Then one thread has the setup and wants the module's
lock, and the other has the module's lock and wants the setup. Where both are locks of modules Python ends such a circle
by an error in one of the threads; a lock of torch_npu's own among them makes it a hang. After an error the next try
must succeed.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { first = ["step", "module"], body = ["setup", "import"] }
# timeout = 90
# releases = ">=2.7.1"
# ///

import importlib
import sys
import types
from pathlib import Path

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

HANGS = 10.0  # seconds in which a thread that can go on would have ended many times over
run_step = subject.setup_step
in_step, step_may_import = probe.gate("a thread is in a step"), probe.gate("the step may import the module")
in_body, body_may_call = probe.gate("a thread is in the module's body"), probe.gate("the body may go on")


def call():
    if probe.param("body") == "setup":
        subject.dynamo_setup()
    else:
        importlib.import_module("torch._dynamo")


def body():
    if not body_may_call.is_open:
        in_body.arrive()
        body_may_call.wait()
    call()


def step(name, setup):
    if name == "backends":
        in_step.arrive()
        step_may_import.wait()
        importlib.import_module("needs_setup")
    run_step(name, setup)


hooks = types.ModuleType("hooks_of_the_case")
hooks.body = body
sys.modules["hooks_of_the_case"] = hooks
Path("needs_setup.py").write_text("import hooks_of_the_case\nhooks_of_the_case.body()\nVALUE = 'there'\n")
sys.path.insert(0, str(Path.cwd()))


def ends(thread):
    """Whether it has ended by Python's own error."""
    try:
        thread.join(HANGS)
    except RuntimeError as error:
        probe.check("deadlock" in str(error), "the error is Python's way out of a circle", error=repr(error))
        return True
    return False


with subject.replaced("setup_step", step):
    stepping = probe.thread(importlib.import_module, "torch._dynamo")
    in_step.wait(30)
    importing = probe.thread(importlib.import_module, "needs_setup")
    in_body.wait(30)
    if probe.param("first") == "module":
        step_may_import.arrive()
        stepping.reach("acquire", 30)
        body_may_call.arrive()
    else:
        body_may_call.arrive()
        importing.reach("call", 30)
        importing.reach(("acquire", "wait"), 30)
        step_may_import.arrive()
    errors = [ends(stepping), ends(importing)]
    probe.check(errors != [True, True], "one thread at most is given an error", errors=errors)
    importlib.import_module("torch._dynamo")
    subject.dynamo_setup()

probe.equal(importlib.import_module("needs_setup").VALUE, "there", "what the module holds")
probe.check(subject.dynamo_setup.has_run, "the setup has run")
compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
