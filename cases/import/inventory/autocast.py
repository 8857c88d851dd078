"""An NPU autocast block is captured for device npu, with dtype, enabled and cache flags as the user wrote them.

The class has a signature of its own, in which the device is implied and arguments may come by position. A capture
that mixes them up runs the block in another precision, and nothing tells the user.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

BLOCKS = {
    "default": (lambda: torch.npu.amp.autocast(enabled=True), ("npu", torch.float16, True, True)),
    "keywords": (
        lambda: torch.npu.amp.autocast(dtype=torch.bfloat16, cache_enabled=False),
        ("npu", torch.bfloat16, True, False),
    ),
    "positional": (lambda: torch_npu.npu.amp.autocast(True, torch.bfloat16), ("npu", torch.bfloat16, True, True)),
    "disabled": (lambda: torch_npu.npu.amp.autocast(enabled=False), ("npu", torch.float16, False, True)),
    "torch_autocast": (lambda: torch.autocast("npu", dtype=torch.float16), ("npu", torch.float16, True, None)),
}
graphs = []


def capture(module, _):
    graphs.append(module.graph)
    return module.forward


def judge(form):
    block, expected = BLOCKS[form]

    def inside(x):
        with block():
            return x + 1

    torch.compiler.reset()
    graphs.clear()
    result = torch.compile(inside, backend=capture, fullgraph=True)(torch.ones(3))
    probe.close(result, torch.full((3,), 2.0), "x + 1 inside the block")
    probe.equal(len(graphs), 1, "captured graphs")
    nodes = [(getattr(node.target, "__name__", ""), tuple(node.args)) for node in graphs[0].nodes]
    order = [name for name, _ in nodes if name in ("_enter_autocast", "add", "_exit_autocast")]
    probe.equal(order, ["_enter_autocast", "add", "_exit_autocast"], "order of the nodes")
    entered = [arguments for name, arguments in nodes if name == "_enter_autocast"]
    probe.equal(entered, [expected], "device, dtype, enabled, cache_enabled of the captured block")


probe.each(list(BLOCKS), judge)
