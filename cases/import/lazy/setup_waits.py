"""Dynamo setup does not run during `import torch_npu`; it has run when `import torch._dynamo` returns.

The setup patches Dynamo's variable classes, so it can neither run before Dynamo exists nor after the first frame is
traced. Looks at `_lazy_dynamo_setup.has_run`, the flag that torch_npu's own tests and downstream projects read.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { route = ["import", "attribute", "list_backends"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

probe.equal(subject.dynamo_setup.has_run, False, "Dynamo setup has run after import torch_npu")
probe.compilers_absent()

match probe.param("route"):
    case "import":
        import torch._dynamo
    case "attribute":
        torch._dynamo.is_compiling  # noqa: B018 -- torch imports Dynamo when the attribute is read
    case "list_backends":
        torch.compiler.list_backends()

probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run after Dynamo was imported")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run after Dynamo was imported")
probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree")
probe.modules.left_to_torch("triton")
probe.device_untouched()
