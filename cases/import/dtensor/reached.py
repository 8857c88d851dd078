"""Whichever part of torch.distributed a program imports first, DTensor knows the NPU's operators once it is there.

DTensor is mostly imported by something else: by FSDP, tensor parallelism, checkpoints, pipelines. The NPU's strategies
have to come along in each of these chains, and must not break one by importing what is just being imported. Each
chain is tried in a copy of the process, so that none profits from another.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 240
# releases = ">=2.9"
# ///

import importlib
import sys

from harness import probe

import torch
import torch_npu

CHAINS = """
    _functional_collectives _shard.sharded_tensor _tensor _tensor.experimental algorithms.ddp_comm_hooks checkpoint
    checkpoint.state_dict device_mesh elastic.rendezvous fsdp fsdp.sharded_grad_scaler launcher.api nn.functional optim
    pipelining rpc run tensor tensor._ops tensor._ops.utils tensor.debug tensor.experimental tensor.parallel
    tensor.placement_types
"""
OPERATORS = ("npu_rms_norm", "npu_fusion_attention", "npu_rotary_mul")


def unknown(chain):
    importlib.import_module(chain)
    before = "torch.distributed.tensor" in sys.modules
    if not before:
        importlib.import_module("torch.distributed.tensor")
    known = torch.distributed.tensor.DTensor._op_dispatcher.sharding_propagator.op_strategy_funcs
    return before, [name for name in OPERATORS if getattr(torch.ops.npu, name).default not in known]


found = {chain: probe.forked(unknown, f"torch.distributed.{chain}") for chain in CHAINS.split()}
probe.check(sum(before for before, _ in found.values()) > 5, "several of the chains bring DTensor themselves")
probe.equal({chain: names for chain, (_, names) in found.items() if names}, {}, "NPU operators without a strategy")
