"""Patches on the torch._dynamo package object are in force again after importlib.reload.

A reload runs the package's body anew and so puts torch's own `optimize` back. With the trigger gone nobody replaces
it, and backend "npu" is no longer prepared before the model runs: the user meets a late failure instead of an early
one. Seen from outside: `torch._dynamo.optimize("npu")` fetches the backend from torchair, here a stand-in that
counts.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { reloads = ["none", "one_or_two"] }
# timeout = 120
# releases = ">=2.7.1, <2.15"           # from torch 2.15 on the backend carries a hook of its own
# ///

import importlib
import sys
from types import SimpleNamespace

from harness import probe

import torch
import torch_npu

import torch._dynamo


def optimize_fetches_the_backend_after(reloads):
    fetched = []

    def get_npu_backend(compiler_config=None):
        fetched.append(compiler_config)
        return lambda graph, *_: graph

    for _ in range(reloads):
        importlib.reload(torch._dynamo)
    sys.modules["torchair"] = SimpleNamespace(get_npu_backend=get_npu_backend)
    torch._dynamo.optimize("npu")
    probe.equal(len(fetched), 1, "times that the backend was fetched ahead of the first run")


# A fetched backend is kept, so each number of reloads gets a copy of the process.
numbers = [0] if probe.param("reloads") == "none" else [1, 2]
probe.each(numbers, optimize_fetches_the_backend_after, forked=True)
