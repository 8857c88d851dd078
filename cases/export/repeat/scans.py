"""Exports after the first do not look through the metadata of the installed packages.

A look costs tens of milliseconds and grows with the environment. Doing it once, to find the backends, is enough.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = {}
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib.metadata
import sys

import torch
import torch_npu
from harness import probe

looks = []


class Counts:
    """A finder that finds nothing: every look through the metadata asks each finder once."""

    @staticmethod
    def find_spec(*_):
        return None

    @staticmethod
    def find_distributions(context):
        looks.append(context)
        return ()


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2 + 1


x = torch.arange(3.0).npu()
torch.export.export(Model(), (x,), strict=True)
sys.meta_path.insert(0, Counts())
for strict in (True, False) * 5:
    program = torch.export.export(Model(), (x,), strict=strict)
    probe.close(program.module()(x), torch.arange(3.0) * 2 + 1, "the result")
probe.equal(len(looks), 0, "looks through the metadata in ten exports")
importlib.metadata.entry_points()
probe.equal(len(looks), 1, "looks that were counted for one call of entry_points")
