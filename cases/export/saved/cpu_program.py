"""A CPU program exported beside torch_npu runs where there is none, and the other way round.

Having the backend installed must leave nothing of it in programs that never use it: no operator, no device, no class
that the file refers to.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { exported = ["with_torch_npu", "without"] }
# timeout = 300
# releases = ">=2.7.1"
# ///

from pathlib import Path

from harness import probe

model = """
import sys
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.inner(x)
        return self.norm(self.inner(x)) * y

x = torch.arange(12.0).reshape(4, 3)
"""
export = """
torch.manual_seed(0)
model = Model().eval()
for name, strict in (("strict", True), ("not_strict", False)):
    torch.export.save(torch.export.export(model, (x,), strict=strict), f"{name}.pt2")
torch.save(model(x).detach(), "wanted.pt")
print("torch_npu" in sys.modules)
"""
load = """
wanted = torch.load("wanted.pt")
for name in ("strict", "not_strict"):
    result = torch.export.load(f"{name}.pt2").module()(x).detach()
    assert torch.equal(result, wanted), (name, result, wanted)
print("torch_npu" in sys.modules)
"""


def run(code, with_torch_npu):
    done = probe.python(("import torch_npu\n" if with_torch_npu else "") + model + code)
    probe.equal(done.stdout.split()[-1:], [str(with_torch_npu)], "whether torch_npu is loaded")


first = probe.param("exported") == "with_torch_npu"
run(export, first)
for name in ("strict.pt2", "not_strict.pt2"):
    probe.check(Path(name).stat().st_size > 0, f"{name} was written")
run(load, not first)
