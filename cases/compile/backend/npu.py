"""Backend npu hands each graph to the graph engine once, with the caller's options, and gives the engine's results.

The engine, torchair, needs libraries that few machines have, so a recorder that runs the graph stands in its place:
what is judged is torch_npu's part. NPU Inductor stays out, and what the engine refuses reaches the user.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { reached = ["by_name", "by_optimize"] }
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import sys
from types import SimpleNamespace

import torch
import torch_npu
from harness import probe
from cases import _subject as subject
from torch import nn

configurations, graphs, options = [], [], []
refusing = []


def get_npu_backend(compiler_config=None):
    configurations.append(compiler_config)

    def engine(graph, inputs, **given):
        if refusing:
            raise NotImplementedError("the engine's own words")
        graphs.append((type(graph).__name__, [each.device.type for each in inputs if isinstance(each, torch.Tensor)]))
        options.append(given)
        return graph.forward

    return engine


sys.modules["torchair"] = SimpleNamespace(get_npu_backend=get_npu_backend)
torch.manual_seed(0)


def compiled(function, **arguments):
    if probe.param("reached") == "by_optimize":
        return torch._dynamo.optimize("npu", nopython=True)(function)
    return torch.compile(function, backend="npu", fullgraph=True, **arguments)


def several(x, y):
    return {"sum": x.sin() + 1, "product": (x @ y.T).softmax(-1)}


arguments = torch.randn(4, 6), torch.randn(4, 6)
placed = [each.npu() for each in arguments]
function = compiled(several)
for turn in ("first", "second"):
    result, eager = function(*placed), several(*placed)
    probe.close(result, several(*arguments), f"result of the {turn} call, and the CPU's", rtol=1e-4, atol=1e-5)
    probe.close(result, eager, f"result of the {turn} call, and eager's")
probe.equal(graphs, [("GraphModule", ["npu", "npu"])], "graphs that the engine got, with their inputs' devices")

plain = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
expected = plain(arguments[0])
model = plain.npu()
probe.close(compiled(model)(placed[0]), expected, "result of a module", rtol=1e-4, atol=1e-5)
probe.equal(len(graphs), 2, "graphs that the engine got for two functions")
probe.equal(configurations, [None], "configurations with which the engine was made: once, with its own defaults")

if probe.param("reached") == "by_name":
    asked = {"fuse": True}
    probe.close(compiled(lambda x: x * 3, options=asked)(placed[0]), arguments[0] * 3, "result with options")
    probe.equal(options, [{}, {}, {"options": asked}], "what the engine was told of options")
refusing.append(True)
with probe.raises(Exception, match="the engine's own words"):
    compiled(lambda x: x * 4)(placed[0])
refusing.clear()
torch.compiler.reset()
probe.close(compiled(lambda x: x * 4)(placed[0]), arguments[0] * 4, "result after a refusal and a reset")
probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.equal(subject.inductor_is_loaded(), False, "NPU Inductor is initialised")
probe.modules.absent("torch_npu._inductor", "torch_npu.dynamo.torchair")
probe.modules.left_to_torch("triton")
