"""Marks made by several threads at once are all counted.

Servers mark a step in each worker thread. A lost mark gives two steps one number, and the second may overwrite what
the first returned. Point `interrupted` stops a thread between any two bytecodes of its mark while another one marks,
as a debugger may, and a Python without the global lock.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = { marks = ["at_once", "interrupted"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys
import threading

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

mark = torch.compiler.npugraph_mark_step_begin
PATIENCE = 5.0  # seconds after which a mark that has not returned is taken to wait for the interrupted one


def at_once():
    threads, marks = 4, 2000
    start = probe.gate("all threads are there", parties=threads)

    def work():
        start.meet()
        for _ in range(marks):
            mark()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in [probe.thread(work) for _ in range(threads)]:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return threads * marks


def interrupted():
    others = []
    waits = False  # a mark that waits for the interrupted one shows that they exclude each other

    def other_mark():
        nonlocal waits
        ended = threading.Event()
        others.append(probe.thread(lambda: (mark(), ended.set())))
        waits = waits or not ended.wait(0 if waits else PATIENCE)

    def trace(frame, event, _argument):
        frame.f_trace_opcodes = True
        if event == "opcode":
            other_mark()
        return trace

    sys.settrace(trace)
    mark()
    sys.settrace(None)
    for thread in others:
        thread.join()
    return 1 + len(others)


mark()
made = 1 + (at_once if probe.param("marks") == "at_once" else interrupted)()
probe.check(made > 1, "more than one mark was made", made=made)
probe.equal(subject.MarkStepBox.mark_step_counter, -made, "counter after all marks")
probe.compilers_absent()
