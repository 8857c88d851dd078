"""An NPU autocast block can be compiled however the class came to its name: imported, in a closure, as an argument.

`from torch_npu.npu.amp import autocast` is the usual way to write mixed precision. A capture that knows the class
only when it is reached through its module breaks the graph at the first such block, and with fullgraph refuses the
model.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { reached = ["by_path", "by_name"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
import torch_npu.npu.amp as amp
from torch_npu.npu.amp import autocast
from harness import probe

graphs = []


def capture(module, _):
    graphs.append(module.graph)
    return module.forward


def imported_name(x):
    with autocast(dtype=torch.bfloat16):
        return x + 1


def build_closure(block):
    def closure(x):
        with block(dtype=torch.bfloat16):
            return x + 1

    return closure


def argument(x, block=autocast):
    with block(dtype=torch.bfloat16):
        return x + 1


def local(x):
    block = torch_npu.npu.amp.autocast
    with block(dtype=torch.bfloat16):
        return x + 1


def module_alias(x):
    with amp.autocast(dtype=torch.bfloat16):
        return x + 1


def full_path(x):
    with torch_npu.npu.amp.autocast(dtype=torch.bfloat16):
        return x + 1


def judge(function):
    torch.compiler.reset()
    graphs.clear()
    result = torch.compile(function, backend=capture, fullgraph=True)(torch.ones(3))
    nodes = [node for graph in graphs for node in graph.nodes]
    entered = [node.args[:2] for node in nodes if getattr(node.target, "__name__", "") == "_enter_autocast"]
    probe.equal(entered, [("npu", torch.bfloat16)], "device and dtype of the captured block")
    probe.equal(result.tolist(), [2.0, 2.0, 2.0], "x + 1 inside the block")


functions = {"by_path": (local, full_path), "by_name": (imported_name, build_closure(autocast), argument, module_alias)}
probe.each(functions[probe.param("reached")], judge)
