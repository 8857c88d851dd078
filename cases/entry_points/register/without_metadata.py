"""Without the installed package's metadata, as from a source tree, all three backends can be used in a fresh process.

Developers and vendored copies run torch_npu without pip having seen it. torch then learns of the backends only from
what torch_npu registers, so it must register each of them, before anything else of it has been compiled.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { backend = ["npu", "npugraph_ex", "npugraphs"] }
# timeout = 120
# releases = ">=2.10"
# ///

import importlib.metadata
import sys
from types import SimpleNamespace

from harness import probe

real = importlib.metadata.entry_points


def entry_points(**selection):
    found = real(**selection)
    return importlib.metadata.EntryPoints(each for each in found if not each.value.startswith("torch_npu"))


importlib.metadata.entry_points = entry_points
# In place of the graph engine, whose libraries few machines have; its name is taken before torch_npu looks.
sys.modules["torchair"] = SimpleNamespace(get_npu_backend=lambda **_: lambda graph, *_args, **_options: graph)
import torch
import torch_npu

probe.equal([*entry_points(group="torch_dynamo_backends")], [], "backends that the metadata announces")
name = probe.param("backend")
compiled = torch.compile(lambda x: x * 2 + 1, backend=name, fullgraph=True)
import torch._dynamo
from torch._dynamo.backends import registry

probe.check(callable(registry.lookup_backend(name)), f"{name} can be looked up")
probe.check(name in torch.compiler.list_backends(), f"{name} is listed")
probe.modules.absent("torch_npu._inductor")
x = torch.arange(3.0)
# The second call of npugraph_ex asks the runtime for limits per stream; not every runtime has them.
for turn in range(1 if name == "npugraph_ex" else 2):
    probe.close(compiled(x), x * 2 + 1, f"result of call {turn}")
