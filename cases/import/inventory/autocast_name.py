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


known = {"by_path": (local, full_path), "by_name": (imported_name, build_closure(autocast), argument, module_alias)}
wrong = {}
for function in known[probe.param("reached")]:
    torch.compiler.reset()
    graphs.clear()
    try:
        result = torch.compile(function, backend=capture, fullgraph=True)(torch.ones(3))
    except Exception as error:
        wrong[function.__name__] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
        continue
    nodes = graphs[0].nodes if graphs else []
    entered = [node.args[:2] for node in nodes if getattr(node.target, "__name__", "") == "_enter_autocast"]
    if entered != [("npu", torch.bfloat16)] or result.tolist() != [2.0, 2.0, 2.0]:
        wrong[function.__name__] = f"entered {entered}, result {result.tolist()}"
probe.equal(wrong, {}, "blocks that are not captured with device npu and dtype bfloat16")
