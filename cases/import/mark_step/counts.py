"""`torch.compiler.npugraph_mark_step_begin` is there after `import torch_npu`, counts a step and loads no compiler.

Inference loops call the marker once per step whether or not anything was compiled. Loading the graph compiler for
that would make the loop's first step slow in programs that never use graphs; a marker that counts nothing would let a
later graph replay overwrite outputs that are still in use. The counter lives in `torch_npu.npu._graph_tree_state`.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import inspect

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

mark = torch.compiler.npugraph_mark_step_begin
probe.equal(mark.__name__, "npugraph_mark_step_begin", "name of the marker")
probe.equal(str(inspect.signature(mark)), "()", "signature of the marker")


probe.equal(subject.MarkStepBox.mark_step_counter, 0, "counter before the first mark")
probe.same(mark(), None, "result of the marker")
probe.equal(subject.MarkStepBox.mark_step_counter, -1, "counter after one mark")
mark()
probe.equal(subject.MarkStepBox.mark_step_counter, -2, "counter after two marks")

probe.equal(subject.dynamo_setup.has_run, False, "Dynamo setup has run")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.compilers_absent()
probe.device_untouched()
