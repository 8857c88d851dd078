"""`ahead_of_time_worker.py compile PACKAGE` compiles a model for the simulated NPU ahead of time, `run` runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch_npu  # noqa: F401 - brings the device
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.linear(x), -1) * 2


def made() -> tuple[Model, Tensor]:
    torch.manual_seed(3)
    return Model().eval(), torch.randn(3, 8)


def compile_ahead(package: Path) -> None:
    import torch_npu._inductor  # noqa: F401 - only torch.compile loads it by itself

    model, x = made()
    with torch.no_grad():
        program = torch.export.export(model.to("npu"), (x.npu(),))
        torch._inductor.aoti_compile_and_package(program, package_path=str(package))


def run(package: Path) -> None:
    # Gone before the interpreter ends: torch_npu has given the device back by then, and the model's end would raise.
    compiled = torch._inductor.aoti_load_package(str(package))
    model, x = made()
    for given in (x, x * 2):
        torch.testing.assert_close(compiled(given.npu()).cpu(), model(given), rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    {"compile": compile_ahead, "run": run}[sys.argv[1]](Path(sys.argv[2]))
