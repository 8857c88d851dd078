"""When Dynamo is already loaded, `import torch_npu` itself runs Dynamo setup, and still loads no NPU Inductor.

Notebooks and test runners import Dynamo long before the backend. The last moment at which nothing has been traced
with NPU objects is the import of torch_npu, so setup may not wait for another import of Dynamo that will never come.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { before = ["imported", "traced"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

from harness import probe
from cases import _subject as subject

import torch

match probe.param("before"):
    case "imported":
        import torch._dynamo.config
    case "traced":
        probe.close(torch.compile(lambda x: x - 1, backend="eager")(torch.tensor(1)), torch.tensor(0), "compiled x - 1")
probe.modules.absent("torch_npu")

import torch_npu

probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run when import torch_npu returns")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree")
probe.modules.left_to_torch("triton")
probe.device_untouched()

backends = torch._dynamo.list_backends(exclude_tags=None)
probe.check({"npu", "npugraph_ex", "npugraphs"} <= set(backends), "the three backends are listed", backends=backends)
compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.tensor(1)), torch.tensor(2), "compiled x + 1")
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
