"""A callable that another package registers as "npu" after torch_npu is refused as any second one, the NPU's stays.

torch refuses a second registration of a name by "duplicate name". torch_npu must not be the exception whose name can be
taken away, whether Dynamo was loaded by then or not: backend="npu" would mean whatever was imported last.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { dynamo = ["first_loaded_by_the_other", "loaded"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

if probe.param("dynamo") == "loaded":
    torch.compiler.list_backends()

import torch._dynamo
from torch._dynamo.backends import registry


def foreign(module, _):
    return module.forward


for name in ("npu", "npugraph_ex"):
    with probe.raises(AssertionError, match=f"duplicate name: {name}"):
        torch._dynamo.register_backend(foreign, name)
    found = registry.lookup_backend(name)
    probe.equal(found.__module__, "torch_npu.dynamo", f"home of {name} afterwards")
    probe.check(name in registry.list_backends(), f"{name} is listed afterwards")
subject.register_backends()
probe.equal(registry.lookup_backend("npu").__module__, "torch_npu.dynamo", "home of npu after another registration")
compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
