"""When importing FSDP brings Dynamo in with it, the NPU's parts of both are in force, whichever way round.

On some releases of torch FSDP's own import chain loads Dynamo; here a module of that chain is made to. Two set-ups then
run inside one import, one in the middle of the other.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 300
# releases = ">=2.7.1"
# ///

import importlib
import sys
from importlib.machinery import PathFinder

from harness import probe
from cases import _subject as subject

import torch

CHAIN = "torch.distributed.fsdp._init_utils"


class DynamoFirst:
    """Serves the module of the chain with an import of Dynamo in front of its body."""

    asked = 0

    def find_spec(self, name, path=None, target=None):
        if name != CHAIN:
            return None
        DynamoFirst.asked += 1
        spec = PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def exec_module(module):
            importlib.import_module("torch._dynamo")
            execute(module)

        spec.loader.exec_module = exec_module
        return spec


def judge(*order):
    sys.meta_path.insert(sys.meta_path.index(PathFinder), DynamoFirst())
    for name in order:
        importlib.import_module(name)
    import torch_npu
    from torch.distributed.fsdp import fully_shard, sharded_grad_scaler

    probe.equal(DynamoFirst.asked, 1, "times that the chain's module was looked up")
    probe.modules.present("torch._dynamo")
    probe.same(subject.dynamo_setup.has_run, True, "whether Dynamo setup has run")
    times = subject.times_of_trace_maps()
    probe.equal(times, [1, 1, 1], "times that each of the NPU's trace maps is in Dynamo's table")
    probe.same(sharded_grad_scaler.ShardedGradScaler, torch_npu._ShardedGradScaler, "ShardedGradScaler")
    probe.check(callable(fully_shard), "fully_shard is callable")
    compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
    probe.modules.absent("torch_npu._inductor")


probe.each([("torch_npu", "torch.distributed.fsdp"), ("torch.distributed.fsdp", "torch_npu")], judge, forked=True)
