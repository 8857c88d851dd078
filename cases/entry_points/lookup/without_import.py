"""torch.compile(backend=name) finds an NPU backend by the metadata alone, without an import of torch_npu, and works.

With autoload off this is the only way in. The entry point imports torch_npu in the middle of torch's own lookup;
registering the name there as well as in the lookup used to raise "duplicate name".
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { first = ["npu", "npugraph_ex", "npugraphs", "listing"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import sys
from types import SimpleNamespace

from harness import probe
from cases import _subject as subject

# In place of the graph engine, whose libraries few machines have; its name is taken before torch_npu looks.
sys.modules["torchair"] = SimpleNamespace(get_npu_backend=lambda **_: lambda graph, *_args, **_options: graph)
import torch
from torch._dynamo.backends import registry

NAMES = ["npu", "npugraph_ex", "npugraphs"]
probe.modules.absent("torch_npu")
if probe.param("first") == "listing":
    listed = torch.compiler.list_backends()
    probe.equal([name for name in NAMES if name not in listed], [], "backends that are not listed without torch_npu")
    probe.modules.absent("torch_npu")
    order = NAMES
else:
    order = sorted(NAMES, key=lambda name: name != probe.param("first"))

compiled = torch.compile(lambda x: x * 2 + 1, backend=order[0], fullgraph=True)
found = {order[0]: registry.lookup_backend(order[0])}
probe.modules.present("torch_npu")
import torch_npu.dynamo

probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run")
for name in order[1:]:
    found[name] = registry.lookup_backend(name)
entries = {name: getattr(torch_npu.dynamo, f"_{name}_backend_entrypoint") for name in NAMES}
probe.equal([name for name in order if found[name] is not entries[name]], [], "look-ups that gave something else")
others = [name for name in order if registry._COMPILER_FNS[name] is not entries[name]]
probe.equal(others, [], "backends that are another object in torch's table")

subject.register_backends()
again = [name for name in order if registry.lookup_backend(name) is not entries[name]]
probe.equal(again, [], "backends that are another object after another registration")
probe.check(set(NAMES) <= set(torch.compiler.list_backends()), "all three are listed")
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
x = torch.arange(3.0)
# The second call of npugraph_ex asks the runtime for limits per stream; not every runtime has them.
for turn in range(1 if order[0] == "npugraph_ex" else 2):
    probe.close(compiled(x), x * 2 + 1, f"result of call {turn}")
