"""Every mark moves one counter: made before or after Inductor setup, through a name bound earlier, or in a thread.

`from torch.compiler import npugraph_mark_step_begin` at the top of a program binds the function that was there then.
If setup put another function with another counter in its place, that program's marks would be lost, and graphs would
overwrite outputs in use. A reset of the compiler starts a new count; the function stays.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "graph"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import inspect

import torch
import torch_npu
from harness import probe
from cases import _subject as subject
from torch.compiler import npugraph_mark_step_begin as early

early()
probe.thread(early).join()
probe.equal(subject.MarkStepBox.mark_step_counter, -2, "counter after a mark here and one in a thread")
probe.compilers_absent()

step = torch.compile(lambda x: x * 2 + 1, backend="npugraphs")
early()
probe.equal(subject.MarkStepBox.mark_step_counter, -3, "counter after a mark between torch.compile and the first call")
x = torch.arange(4.0)
probe.close(step(x.npu()), x * 2 + 1, "the first step")
probe.equal(subject.inductor_setup.has_run, True, "Inductor setup has run")

late = torch.compiler.npugraph_mark_step_begin
probe.equal(late.__name__, "npugraph_mark_step_begin", "name of the marker after setup")
probe.equal(str(inspect.signature(late)), "()", "signature of the marker after setup")
probe.equal(subject.MarkStepBox.mark_step_counter, -3, "counter after setup")
for turn, mark in enumerate((early, late, late, early), start=1):
    probe.same(mark(), None, "result of the marker")
    probe.equal(subject.MarkStepBox.mark_step_counter, -3 - turn, f"counter after mark {turn} since setup")
for mark in (early, late):
    probe.thread(mark).join()
probe.equal(subject.MarkStepBox.mark_step_counter, -9, "counter after a mark by each in a thread")

import torch_npu.npu._graph_tree as graph_tree

probe.same(graph_tree.MarkStepBox, subject.MarkStepBox, "the counter of the graph trees")
torch.compiler.reset()
probe.equal(subject.MarkStepBox.mark_step_counter, 0, "counter after torch.compiler.reset()")
early()
torch.compiler.npugraph_mark_step_begin()
probe.equal(subject.MarkStepBox.mark_step_counter, -2, "counter after two marks since the reset")
