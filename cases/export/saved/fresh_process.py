"""A program exported on the NPU and saved runs in a fresh process, with nothing but `import torch` before it.

Export and use are usually two programs on two machines. The one that loads has no reason to know about setup, and none
to have NPU Inductor loaded.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops"]
# timeout = 300
# releases = ">=2.7.1"
# ///

import json

import torch
import torch_npu
from harness import probe


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.relu(self.inner(x)) + torch.npu.current_device()


class Autocast(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("npu", dtype=torch.float16):
            return torch.mm(x, x.t())


class Asks(torch.nn.Module):
    """Streams, and questions about the device, whose answers are constants of the program."""

    def forward(self, x):
        stream = torch.npu.Stream()
        stream.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(stream):
            x = x * 2
        torch.npu.current_stream().wait_stream(stream)
        if torch.npu.is_available() and torch.npu.get_device_properties(0).total_memory > 0:
            return x + 1
        return x - 1


x = (torch.arange(12.0).reshape(4, 3) / 8).npu()
rows = torch.export.Dim("rows")
programs = {
    "plain": torch.export.export(Plain().npu(), (x,), strict=True),
    "autocast": torch.export.export(Autocast(), (x,), strict=True),
    # Not strict: torch numbers the streams of a strict program in a table that the fresh process has not got.
    "asks": torch.export.export(Asks(), (x,), strict=False),
    "not_strict": torch.export.export(Autocast(), (x,), strict=False),
    "any_rows": torch.export.export(Plain().npu(), (x,), dynamic_shapes={"x": {0: rows}}, strict=True),
}
programs["decomposed"] = programs["plain"].run_decompositions()

for name, program in programs.items():
    torch.export.save(program, f"{name}.pt2")
given = {name: torch.cat([x, x]) if name == "any_rows" else x for name in programs}
with torch.no_grad():
    wanted = {name: program.module()(given[name]) for name, program in programs.items()}
torch.save({name: value.cpu() for name, value in given.items()}, "given.pt")

fresh = """
import json, sys
import torch

results = {}
with torch.no_grad():
    for name, x in torch.load("given.pt").items():
        program = torch.export.load(f"{name}.pt2")
        results[name] = program.module()(x.npu())
torch.save({name: value.cpu() for name, value in results.items()}, "results.pt")
print(json.dumps({
    "devices": sorted({value.device.type for value in results.values()}),
    "npu_inductor": "torch_npu._inductor" in sys.modules,
}))
"""
told = json.loads(probe.python(fresh, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}).stdout.splitlines()[-1])
probe.equal(
    told, {"devices": ["npu"], "npu_inductor": False}, "devices of the results, and whether NPU Inductor came in"
)
results = torch.load("results.pt")
for name, value in wanted.items():
    probe.close(results[name], value.cpu(), f"{name}: the result in the fresh process")
