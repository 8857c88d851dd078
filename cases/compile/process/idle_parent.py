"""Inductor compiles for an NPU in a forked child, a spawned one and a data loader, while the parent leaves it alone.

The loader spawns its workers: before it forks any, torch_npu itself uses the device.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { how = ["fork", "spawn", "loader"] }
# needs = ["ops", "triton", "kernels"]
# timeout = 240
# releases = ">=2.13"
# ///

import json
from pathlib import Path

import torch
from harness import probe

COMPILES = """
import torch
import torch_npu


def function(x):
    return torch.softmax(x, -1) + x.sum()


def compiled():
    x = torch.linspace(-2, 2, 40).reshape(8, 5).npu()
    return torch.compile(function, backend="inductor", fullgraph=True)(x).tolist()


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.tensor(compiled()) + index
"""
# A program of its own: multiprocessing imports the main program of the parent in a child.
PROGRAM = """
import json
import multiprocessing
import sys

sys.path.insert(0, "")
import compiles
import torch

if sys.argv[1] == "loader":
    loader = torch.utils.data.DataLoader(
        compiles.Data(), batch_size=None, num_workers=1, multiprocessing_context="spawn"
    )
    print(json.dumps([item.tolist() for item in loader]))
else:
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(json.dumps([pool.apply_async(compiles.compiled).get(150)]))
"""
Path("compiles.py").write_text(COMPILES)
namespace = {}
exec(COMPILES, namespace)
expected = namespace["function"](torch.linspace(-2, 2, 40).reshape(8, 5))
found = json.loads(probe.python(PROGRAM, probe.param("how")).stdout.splitlines()[-1])
for index, result in enumerate(found):
    probe.close(torch.tensor(result), expected + index, f"result {index}", rtol=1e-5, atol=1e-5)
