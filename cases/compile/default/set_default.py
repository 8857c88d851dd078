"""torch.compile uses an NPU backend that torch.compiler.set_default_backend was given, before or after other compiles.

This is how a launcher turns a program that says torch.compile(f) into one for the NPU's graphs, on machines without a
kernel compiler.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { first = ["npugraphs", "eager"] }
# needs = ["ops", "graph"]
# timeout = 120
# releases = ">=2.13"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

if not hasattr(torch.compiler, "set_default_backend"):
    probe.unsupported("this torch has no set_default_backend")
x = torch.arange(4.0)
probe.equal(torch.compiler.get_default_backend(), "inductor", "the default backend at first")
order = ["npugraphs", "eager", "npugraph_ex"]
if probe.param("first") == "eager":
    order = ["eager", "npugraph_ex", "npugraphs"]
used_graphs = False
for factor, name in enumerate(order, start=2):
    torch.compiler.set_default_backend(name)
    probe.equal(torch.compiler.get_default_backend(), name, "the default backend")
    captures = probe.device_calls().get("aclmdlRICaptureBegin", 0)
    compiled = torch.compile(lambda x, factor=factor: x * factor)
    # The second call of npugraph_ex asks the runtime for limits per stream; not every runtime has them.
    for turn in range(1 if name == "npugraph_ex" else 3):
        probe.close(compiled(x.npu()), x * factor, f"result of call {turn}, {name}")
    captured = probe.device_calls().get("aclmdlRICaptureBegin", 0) > captures
    probe.equal(captured, name != "eager", f"a graph was captured for {name}")
    used_graphs = used_graphs or name == "npugraphs"
    probe.equal(subject.inductor_setup.has_run, used_graphs, f"Inductor setup has run after {name}")
