"""torch.compiler.list_backends() names the three NPU backends and loads neither NPU Inductor nor the device.

This is the one call by which a user asks what there is. Dynamo setup is done by it; the price of a kernel compiler is
not due.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { call = ["compiler", "dynamo"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

probe.equal(subject.dynamo_setup.has_run, False, "Dynamo setup has run before the listing")
if probe.param("call") == "compiler":
    listings = {"usual": torch.compiler.list_backends(), "all": torch.compiler.list_backends(exclude_tags=None)}
else:
    listings = {"all": torch._dynamo.list_backends(exclude_tags=None), "usual": torch._dynamo.list_backends()}

wanted = ("npu", "npugraph_ex", "npugraphs", "inductor")
counts = {(kind, name): names.count(name) for kind, names in listings.items() for name in wanted}
probe.equal({at: count for at, count in counts.items() if count != 1}, {}, "backends that are not listed once")
probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run after the listing")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run after the listing")
probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree", "torch_npu.dynamo.torchair")
probe.modules.left_to_torch("triton")
probe.device_untouched()
