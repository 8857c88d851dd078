"""A backend that is not Inductor gives eager's and the CPU's results, and leaves NPU Inductor out.

Backends eager, aot_eager, a callable and npugraph_ex are how people find out whether a fault lies in capture or in
code generation. Each must compute right on the NPU, backward included where it supports one, under fullgraph, and must
not pay for the code generator.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { backend = ["eager_and_callable", "aot_eager", "npugraph_ex"] }
# needs = ["ops", "graph"]
# timeout = 180
# releases = ">=2.7.1"
# ///

import copy

import torch
import torch_npu
from harness import probe
from cases import _subject as subject
from torch import nn

torch.manual_seed(0)
graphs = []


def recorder(module, _inputs):
    graphs.append(module)
    return module.forward


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 12), nn.LayerNorm(12), nn.Linear(12, 3)
        self.register_buffer("offset", torch.full((3,), 0.5))

    def forward(self, x, *, scale=1.0):
        return self.last(torch.tanh(self.norm(self.first(x)))) * scale + self.offset


def several(x, y):
    left, right = x[:, :3], y[:, 3:]
    return {"sum": left + right, "pair": (left @ right.T, x.softmax(-1)), "count": x.shape[0] * 2}


def in_place(x, y):
    z = x * 2
    z.add_(y)
    z[0] = 1.0
    return z


def on_device(value):
    return value.npu() if isinstance(value, torch.Tensor) else value


def judge(backend):
    name = backend if isinstance(backend, str) else "a callable"
    trains = backend != "npugraph_ex"  # a backend for inference
    # Its second call captures, for which it asks the runtime for limits per stream; not every runtime has them.
    calls = 3 if trains else 1
    for function in (several, in_place):
        compiled = torch.compile(function, backend=backend, fullgraph=True)
        for turn in range(calls):
            arguments = torch.randn(4, 6), torch.randn(4, 6)
            placed = [argument.npu() for argument in arguments]
            expected, eager = function(*arguments), function(*placed)
            result = compiled(*placed)
            probe.close(result, expected, f"{function.__name__}, call {turn}, {name}", rtol=1e-4, atol=1e-5)
            probe.close(result, eager, f"{function.__name__}, call {turn}, {name}, and eager", rtol=1e-4, atol=1e-5)
            probe.close(placed, list(arguments), f"arguments of {function.__name__} afterwards, {name}")

    plain = Block()
    model = copy.deepcopy(plain).npu()
    if not trains:
        plain.requires_grad_(False)
        model.requires_grad_(False)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    for turn in range(calls):
        x = torch.randn(4, 6, requires_grad=trains)
        placed = x.detach().npu().requires_grad_(trains)
        result, expected = compiled(placed, scale=2.0), plain(x, scale=2.0)
        probe.close(result, expected, f"the module, call {turn}, {name}", rtol=1e-4, atol=1e-5)
        if trains:
            result.square().sum().backward()
            expected.square().sum().backward()
            pairs = [("x", placed, x)]
            pairs += [(key, mine, plain.get_parameter(key)) for key, mine in model.named_parameters()]
            for key, mine, wanted in pairs:
                probe.close(mine.grad, wanted.grad, f"gradient of {key}, {turn}, {name}", rtol=1e-4, atol=1e-5)
                mine.grad = wanted.grad = None


for backend in ("eager", recorder) if probe.param("backend") == "eager_and_callable" else (probe.param("backend"),):
    judge(backend)
if probe.param("backend") == "eager_and_callable":
    probe.equal(len(graphs), 3, "graphs that the callable got for three functions")
    probe.equal({type(graph).__name__ for graph in graphs}, {"GraphModule"}, "what the callable got")
probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.equal(subject.inductor_is_loaded(), False, "NPU Inductor is initialised")
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
