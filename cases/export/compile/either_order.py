"""Export and compile work in one process in either order, on each other's results, too.

Both drive Dynamo and both may be the first to start its setup. What one leaves behind must not change what the other
captures.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops"]
# timeout = 180
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject


class Model(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("npu", dtype=torch.float16):
            y = torch.mm(x, x)
        return torch.relu(y) + torch.npu.current_device()


def exports(model, x):
    program = torch.export.export(model, (x,), strict=True)
    return {
        "exported": program.module()(x),
        "exported, not strict": torch.export.export(model, (x,), strict=False).module()(x),
        "exported, then compiled": torch.compile(program.module(), backend="eager", fullgraph=True)(x),
    }


def compiles(model, x):
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    return {
        "compiled": compiled(x),
        "compiled with aot_eager": torch.compile(model, backend="aot_eager", fullgraph=True)(x),
        "compiled, then exported": torch.export.export(compiled, (x,), strict=True).module()(x),
    }


def work(first):
    x = torch.arange(9.0).reshape(3, 3).npu() / 8
    model = Model()
    steps = (exports, compiles, exports) if first == "export" else (compiles, exports, compiles)
    for step in steps:
        for name, result in step(model, x).items():
            probe.close(result, model(x), f"{first} first, {name}: the result")
    probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
    probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
    probe.modules.absent("torch_npu._inductor")


for first in ("export", "compile"):
    probe.forked(work, first)
