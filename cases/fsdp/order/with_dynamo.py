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
import os
import sys
from importlib.machinery import PathFinder

from harness import probe

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
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
    import torch_npu.dynamo.trace_rule as npu_rules
    from torch.distributed.fsdp import fully_shard, sharded_grad_scaler
    from torch_npu.utils import _dynamo as npu_dynamo

    what = " then ".join(order)
    probe.equal(DynamoFirst.asked, 1, f"times that the chain's module was looked up ({what})")
    probe.modules.present("torch._dynamo")
    probe.same(npu_dynamo._lazy_dynamo_setup.has_run, True, f"whether Dynamo setup has run ({what})")
    table = torch._dynamo.trace_rules.torch_name_rule_map
    times = sum(entry is npu_rules.skip_functions_npu for entry in table)
    probe.equal(times, 1, f"times that the NPU's trace rules are in Dynamo's table ({what})")
    probe.same(sharded_grad_scaler.ShardedGradScaler, torch_npu._ShardedGradScaler, f"ShardedGradScaler ({what})")
    probe.check(callable(fully_shard), f"fully_shard is callable ({what})")
    compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), f"compiled x + 1 ({what})")
    probe.modules.absent("torch_npu._inductor")


probe.forked(judge, "torch_npu", "torch.distributed.fsdp")
probe.forked(judge, "torch.distributed.fsdp", "torch_npu")
