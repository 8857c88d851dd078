"""Device npu is registered for torch's graph-safe random numbers, and no other accelerator is in its place.

Activation checkpointing with random numbers inside a compiled graph needs it to replay the same numbers in the
backward pass.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["dynamo_before", "dynamo_after"] }
# timeout = 60
# releases = ">=2.13"
# ///

import importlib

from harness import probe

order = {"dynamo_before": ["torch._dynamo", "torch_npu"], "dynamo_after": ["torch_npu", "torch._dynamo"]}
for name in order[probe.param("order")]:
    importlib.import_module(name)

import torch
from torch._functorch._aot_autograd.utils import supports_graphsafe_rng

probe.same(supports_graphsafe_rng(torch.device("npu")), True, "graph-safe random numbers on npu")
probe.same(supports_graphsafe_rng(torch.device("cpu")), False, "graph-safe random numbers on the CPU")

torch.npu.init()
generator = torch.npu._get_generator(torch.device("npu", 0))
first = generator.graphsafe_get_state()
torch.npu.manual_seed(7)
probe.equal(generator.initial_seed(), 7, "seed of the device's generator")
generator.graphsafe_set_state(first)
probe.equal(generator.clone_state().initial_seed(), generator.initial_seed(), "seed of a cloned state")
