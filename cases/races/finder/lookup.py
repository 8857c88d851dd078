"""A look-up or the first import of Dynamo makes no other thread miss a module that is there.

Python walks sys.meta_path while other threads may change it. A trigger that takes itself out of the list, if only for
the time of a question, makes a thread in the middle of its own walk skip a finder: "No module named" for a module that
exists, once in thousands of imports, on the busiest machines first. Here a thread stops just before it goes on to its
next finder, for each of them in turn, until the trigger's finder has come to ask the others (`lookup`), or Dynamo has
been imported (`import`). Python 3.14 walks a copy.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { by = ["lookup", "import"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import dis
import functools
import importlib
import importlib.util
import operator
import sys
from pathlib import Path

from harness import probe

import torch

sys.path.insert(0, str(Path.cwd()))
stop = None  # what to do in a walk's thread, and at which finder


class Asked:
    """The last finder that a walk comes to before it gives up; holds a look-up of Dynamo there."""

    held = None

    def find_spec(self, name, *_):
        if name == "torch._dynamo" and self.held is not None:
            self.held()


asked = Asked()
sys.meta_path.insert(0, asked)  # torch_npu's finder comes before it, and asks it

import torch_npu

before = list(sys.meta_path)


@functools.cache
def advances(code):
    """Offsets at which a walk takes the next finder."""
    return {each.offset for each in dis.get_instructions(code) if each.opname == "FOR_ITER"}


def walk(name, number, interfere, moved):
    """Import `name`; call `interfere` when the walk is about to take the finder with this number, then `moved`."""
    count, state = 0, "walking"

    def trace(frame, *_):
        if frame.f_code.co_name != "_find_spec" or frame.f_locals.get("name") != name:
            return None
        frame.f_trace_opcodes = True
        return opcode

    def opcode(frame, event, _argument):
        nonlocal count, state
        if event == "opcode" and state == "interfered":
            state = "moved"
            moved()
        if event == "opcode" and frame.f_lasti in advances(frame.f_code) and state == "walking":
            if count == number:
                state = "interfered"
                interfere()
            count += 1
        return opcode

    sys.settrace(trace)
    try:
        module = importlib.import_module(name)
    finally:
        sys.settrace(None)
    if state == "interfered":
        moved()
    probe.check(state != "walking", f"the walk for {name} has come to finder {number}", finders=count)
    return module.VALUE


def during_lookup(name, number):
    held, moved = probe.gate("a look-up is held in a finder"), probe.gate("the walk has gone on")
    asked.held = lambda: (held.arrive(), moved.wait(20))
    threads = []

    def interfere():
        threads.append(probe.thread(importlib.util.find_spec, "torch._dynamo"))
        held.wait(20)
        seen.append(list(sys.meta_path))

    try:
        return walk(name, number, interfere, moved.arrive)
    finally:
        asked.held = None
        moved.arrive()
        for thread in threads:
            probe.check(thread.join(20).loader is not None, "the look-up finds Dynamo")


def during_import(name, number):
    return walk(name, number, lambda: probe.thread(importlib.import_module, "torch._dynamo").join(60), lambda: None)


def outcome(way, number):
    name = f"tiny_{number}"
    Path(f"{name}.py").write_text("VALUE = 'there'\n")
    importlib.invalidate_caches()
    try:
        return way(name, number)
    except ImportError as error:
        return f"{type(error).__name__}: {error}"


seen = []
numbers = range(len(before))
if probe.param("by") == "lookup":
    outcomes = [outcome(during_lookup, number) for number in numbers]
    probe.modules.absent("torch._dynamo")
else:
    # Dynamo is imported once in a process: each walk gets a copy of this one.
    outcomes = [probe.forked(outcome, during_import, number, timeout=30) for number in numbers]
probe.equal(outcomes, ["there"] * len(before), "what the walk finds, by the finder before which it was interrupted")
probe.check(all(each == before for each in seen), "no finder leaves sys.meta_path during a look-up", found=seen[:1])
probe.check(
    len(sys.meta_path) == len(before) and all(map(operator.is_, sys.meta_path, before)),
    "the same finders stand in sys.meta_path in the same order afterwards",
)
