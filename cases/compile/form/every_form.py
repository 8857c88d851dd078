"""Every form of torch.compile works on the NPU: decorators, methods, Module.compile, nesting, disable, stance, reset.

Code uses all of them, often in libraries that know no NPU. Each form must give right results, and must compile exactly
what it says it compiles.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import functools

import torch
import torch_npu
from harness import probe
from cases import _subject as subject
from torch import nn

graphs = []


def backend(module, _inputs):
    graphs.append(module)
    return module.forward


x = torch.arange(6.0).reshape(2, 3)
placed = x.npu()


def judge(what, function, expected, compiled=1):
    """The result on the NPU, and how many graphs the first call compiles; the second compiles none."""
    graphs.clear()
    for turn in ("first", "second"):
        probe.close(function(placed), expected, f"{what}, {turn} call")
    probe.equal(len(graphs), compiled, f"graphs compiled for {what}")


@torch.compile(backend=backend, fullgraph=True)
def decorated(x):
    """Doc."""
    return x * 2 + 1


@functools.partial(torch.compile, backend=backend)
def by_partial(x):
    return x * 3


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(4.0))

    def forward(self, x):
        return self.helper(x * self.factor)

    def helper(self, x):
        return x - 1

    @torch.compile(backend=backend)
    def method(self, x):
        return x + self.factor


probe.equal(
    (decorated.__name__, decorated.__doc__), ("decorated", "Doc."), "name and docstring of a decorated function"
)
judge("a decorated function", decorated, x * 2 + 1)
judge("a function decorated by partial", by_partial, x * 3)
judge("a lambda", torch.compile(lambda x: x - 5, backend=backend), x - 5)
judge(
    "a compiled function compiled again",
    torch.compile(torch.compile(lambda x: x * 7, backend=backend), backend=backend),
    x * 7,
)

model = Model().npu()
judge("a method", model.method, x + 4)
wrapped = torch.compile(model, backend=backend)
judge("a module", wrapped, x * 4 - 1)
probe.equal(list(wrapped.state_dict()), ["_orig_mod.factor"], "state of a compiled module")
torch.compiler.reset()
own = Model().npu()
probe.same(own.compile(backend=backend, fullgraph=True), None, "result of Module.compile")
judge("a module compiled in place", own, x * 4 - 1)
probe.equal(list(own.state_dict()), ["factor"], "state of a module compiled in place")
own.factor.data.fill_(2.0)
judge("a module whose parameter has changed", own, x * 2 - 1, compiled=0)


@torch.compiler.disable
def outside(x):
    return x * 10


def around(x):
    return outside(x + 1) + 1


judge("a function around a disabled one", torch.compile(around, backend=backend), (x + 1) * 10 + 1, compiled=2)
torch.compiler.reset()
with probe.raises(torch._dynamo.exc.Unsupported):
    torch.compile(around, backend=backend, fullgraph=True)(placed)
judge("torch.compile(disable=True)", torch.compile(lambda x: x / 2, backend=backend, disable=True), x / 2, compiled=0)

with torch.compiler.set_stance("force_eager"):
    judge("a compiled function under stance force_eager", torch.compile(lambda x: x * 8, backend=backend), x * 8, 0)
judge("a compiled function after the stance", torch.compile(lambda x: x * 8, backend=backend), x * 8)


def asks(x):
    return x + 1 if torch.compiler.is_compiling() else x - 1


judge("a function that asks whether it is compiled", torch.compile(asks, backend=backend), x + 1)
probe.close(asks(placed), x - 1, "the same function, not compiled")

for turn in ("first", "second"):
    torch.compiler.reset()
    judge(f"a decorated function after the {turn} reset", decorated, x * 2 + 1)
    judge(f"a module after the {turn} reset", wrapped, x * 4 - 1)
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
