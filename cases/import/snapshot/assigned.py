"""A name that a program sets on a part of torch_npu, before it uses anything of that part, stays what the program set.

Tools for training and profiling replace torch_npu's classes right after its import, without a look at the old ones. If
a part then loads with its first use and puts its own names back, the replacement is lost, and nobody is told.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import operator
from unittest import mock

import torch_npu.npu._graph_tree_state
from harness import probe

parts = {
    "profiler": ("profile", "ProfilerLevel"),
    "optim": ("NpuFusedSGD", "NpuFusedAdam"),
    "contrib": ("NpuCachedDropout", "Prefetcher"),
    "npu": ("Stream", "Event"),
    "npu._graph_tree_state.MarkStepBox": ("mark_step_counter", "__name__"),
}
lost, not_given_back = [], []
for path, (name, other) in parts.items():
    part, mine = operator.attrgetter(path)(torch_npu), object()
    setattr(part, name, mine)
    getattr(part, other)
    if getattr(part, name) is not mine:
        lost.append(f"{path}.{name}")
    with mock.patch.object(part, name, object()):
        pass
    if getattr(part, name) is not mine:
        not_given_back.append(f"{path}.{name}")
probe.equal(lost, [], "names that are no longer what was set")
probe.equal(not_given_back, [], "names that are no longer what was set, after another value for the length of a test")
