"""Backend npugraphs takes no options: given some, it refuses them by name instead of dropping them.

What a user sets and nobody reads is found out late, as a speed or a result that is not the one asked for. NPU Inductor
and the graph backend are stand-ins here, so that nothing but the refusal can end the call.
"""

# /// script
# [tool.conformance]
# rule = "entry_points/options/1"
# level = "must"
# matrix = { options = ["none", "some"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib

import torch
import torch_npu.dynamo
import torch_npu.utils._dynamo as npu_dynamo
from harness import probe

npu_dynamo._lazy_inductor_setup = lambda: None
graph_tree = importlib.import_module("torch_npu.utils._graph_tree")
graph_tree.NpugraphsBackend = lambda: lambda graph, *_, **__: graph.forward

backend = torch_npu.dynamo._npugraphs_backend_entrypoint
graph = torch.fx.symbolic_trace(lambda x: x + 1)
x = torch.ones(2)
if probe.param("options") == "none":
    probe.close(backend(graph, [x])(x), x + 1, "x + 1 through the entry point")
    compiled = torch.compile(lambda x: x + 1, backend="npugraphs", fullgraph=True)
    probe.close(compiled(x), x + 1, "x + 1 through torch.compile")
else:
    ways = {
        "the entry point": lambda: backend(graph, [x], options={"no_such_option": 1}),
        "torch.compile": lambda: torch.compile(lambda x: x + 1, backend="npugraphs", options={"no_such_option": 1})(x),
    }
    refused = {}
    for what, way in ways.items():
        try:
            way()
        except Exception as error:  # noqa: PERF203 - each way is tried
            refused[what] = "option" in str(error)
        else:
            refused[what] = False
    probe.equal(refused, dict.fromkeys(ways, True), "whether the options are refused by name")
