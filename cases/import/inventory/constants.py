"""In a compiled function current_device, is_available and get_device_properties of torch.npu fold to constants.

Models branch on them ("bfloat16 if the chip has it"). Left in the graph, the branch breaks it; folded wrong, the
wrong path is compiled in.
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

graphs = []
name = torch.npu.get_device_name(0)


def capture(module, _):
    graphs.append(module.graph)
    return module.forward


def current_device(x):
    return x + torch.npu.current_device() + 1


def is_available(x):
    return x + 1 if torch.npu.is_available() else x - 1


def get_device_properties(x):
    return x + 1 if torch.npu.get_device_properties(0).name == name else x - 1


for function in (is_available, get_device_properties, current_device):
    graphs.clear()
    compiled = torch.compile(function, backend=capture, fullgraph=True)
    probe.close(compiled(torch.ones(3)), torch.full((3,), 2.0), f"a function that asks {function.__name__}")
    calls = [node.target.__name__ for node in graphs[0].nodes if node.op == "call_function"]
    probe.check(set(calls) == {"add"}, f"the graph of {function.__name__} holds additions only", calls=calls)

if torch.npu.device_count() > 1:
    torch.npu.set_device(1)  # a guard must notice that the constant has changed; current_device was compiled last
    probe.close(compiled(torch.ones(3)), torch.full((3,), 3.0), "the same function on device 1")
    probe.equal(len(graphs), 2, "graphs after the device has changed")
