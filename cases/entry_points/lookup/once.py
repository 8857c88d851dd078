"""A backend looked up by name is registered once, and is the same object however and how often it is looked up.

torch raises "duplicate name" for a second registration, and torch.compiler.reset() reaches only the object that is in
its table.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { after = ["cold", "listing", "dynamo", "inductor_wrapper"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

# The three names are looked up one after the other, with another one first in each state.
match probe.param("after"):
    case "cold":
        names = ["npu", "npugraph_ex", "npugraphs"]
    case "listing":
        torch.compiler.list_backends(exclude_tags=None)
        names = ["npugraph_ex", "npugraphs", "npu"]
    case "dynamo":
        import torch._dynamo

        names = ["npugraphs", "npu", "npugraph_ex"]
    case "inductor_wrapper":
        torch.compile(lambda x: x, backend="inductor")
        names = ["npugraphs", "npugraph_ex", "npu"]

from torch._dynamo.backends import registry

found = {name: registry.lookup_backend(name) for name in names}
homes = {
    name: type(backend).__module__ if name == "npugraphs" else backend.__module__ for name, backend in found.items()
}
probe.equal(homes, dict.fromkeys(names, "torch_npu.dynamo"), "homes of the backends")
probe.equal([name for name in names if not callable(found[name])], [], "backends that cannot be called")
others = [name for name in names if registry._COMPILER_FNS[name] is not found[name]]
probe.equal(others, [], "backends that are another object in torch's table")

subject.register_backends()
torch.compiler.list_backends()
again = [name for name in names if registry.lookup_backend(name) is not found[name]]
probe.equal(again, [], "backends that are another object when looked up again")
entries = [key for key in registry._BACKENDS if key in names]
probe.equal(sorted(entries), sorted(names), "entries of the three names")
graphs = found["npugraphs"]
probe.same(graphs, subject.npugraphs_entry_point, "the entry point's own object of npugraphs")
probe.check(callable(graphs.reset), "the npugraphs backend can be reset")
probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree")
probe.modules.left_to_torch("triton")
