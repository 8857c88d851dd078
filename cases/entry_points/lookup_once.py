"""A backend looked up by name is registered once, and is the same object however and how often it is looked up.

torch raises "duplicate name" for a second registration, and torch.compiler.reset() reaches only the object that is in
its table.
"""

# /// script
# [tool.conformance]
# rule = "entry_points/lookup/1"
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
#
# [tool.conformance.matrix]
# name = ["npu", "npugraph_ex", "npugraphs"]
# after = ["cold", "listing", "dynamo", "inductor_wrapper", "other_backend"]
# ///

import torch
import torch_npu
from harness import probe

name = probe.param("name")
match probe.param("after"):
    case "listing":
        torch.compiler.list_backends(exclude_tags=None)
    case "dynamo":
        import torch._dynamo
    case "inductor_wrapper":
        torch.compile(lambda x: x, backend="inductor")
    case "other_backend":
        from torch._dynamo.backends.registry import lookup_backend

        lookup_backend("npugraphs" if name == "npu" else "npu")

from torch._dynamo.backends import registry

first = registry.lookup_backend(name)
probe.check(callable(first), f"lookup of {name} gives a callable", backend=first)
probe.equal(
    type(first).__module__ if name == "npugraphs" else first.__module__, "torch_npu.dynamo", "home of the backend"
)
probe.same(registry._COMPILER_FNS[name], first, f"{name} in torch's table")

torch_npu.dynamo._register_backends()
torch.compiler.list_backends()
probe.same(registry.lookup_backend(name), first, f"{name} looked up again")
probe.equal([key for key in registry._BACKENDS if key == name], [name], f"entries of {name}")
if name == "npugraphs":
    probe.same(first, torch_npu.dynamo._npugraphs_backend_entrypoint, "the entry point's own object")
    probe.check(callable(first.reset), "the npugraphs backend can be reset")
probe.modules.absent("torch_npu._inductor", "triton", "torch_npu.npu._graph_tree")
