"""torch.npu.current_stream in a compiled function is traced as torch.accelerator.current_stream is.

From torch 2.12 a graph carries streams by index; a stream that did not pass through the handler has no index, and
fails as a wrong argument in C++ far from the user's line. Looks into Dynamo's handler table, then at the captured
result.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["dynamo_before", "dynamo_after"] }
# timeout = 60
# releases = ">=2.12"
# ///

import importlib

from harness import probe

order = {"dynamo_before": ["torch._dynamo", "torch_npu"], "dynamo_after": ["torch_npu", "torch._dynamo"]}
for name in order[probe.param("order")]:
    importlib.import_module(name)

import torch
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

handlers = TorchInGraphFunctionVariable._get_handlers()
probe.same(handlers[torch.npu.current_stream], handlers[torch.accelerator.current_stream], "handler of current_stream")


def ask(x):
    return x + 1, torch.npu.current_stream(*arguments)


for arguments in ((), ("npu:0",)):
    torch.compiler.reset()
    value, stream = torch.compile(ask, backend="eager", fullgraph=True)(torch.ones(3))
    probe.close(value, torch.full((3,), 2.0), f"x + 1 beside current_stream{arguments}")
    probe.equal(stream.device, torch.device("npu", 0), f"device of current_stream{arguments}")
    current = torch.npu.current_stream().stream_id
    probe.equal(stream.stream_id, current, f"current_stream{arguments} in a compiled function")
