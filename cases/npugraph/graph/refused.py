"""Work that cannot be recorded is refused inside a capture; afterwards nothing is being captured, and captures work.

Waiting for the device inside a capture would wait for ever, for work that is only recorded. The refusal must be an
error, and a program that catches it (to run that part eagerly) must be able to go on.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "graph"]
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

x = torch.arange(4.0, device="npu")
event = torch.npu.Event()


def capture(work):
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        result = work()
    return graph, result


def user_error():
    raise KeyError("the user's own")


def waits_for_event():
    event.record()
    event.synchronize()


REFUSED = {
    "item": (lambda: x.sum().item(), RuntimeError),
    "to the CPU": (x.cpu, RuntimeError),
    "synchronize": (torch.npu.synchronize, RuntimeError),
    "a shape that depends on data": (x.nonzero, RuntimeError),
    "an event": (waits_for_event, RuntimeError),
    "a nested capture": (lambda: capture(lambda: x + 1), RuntimeError),
    "the user's own error": (user_error, KeyError),
}
stream = torch.npu.current_stream()
for name, (work, kind) in REFUSED.items():
    with probe.raises(kind):
        capture(work)
    # Where the end of the capture fails, torch.npu.graph leaves its stream current, as torch.cuda.graph does.
    torch.npu.set_stream(stream)
    probe.equal(torch.npu.is_current_stream_capturing(), False, f"is_current_stream_capturing() after {name}")
    probe.equal(x.tolist(), [0.0, 1.0, 2.0, 3.0], f"the tensor after {name}")
    graph, result = capture(lambda: x * 2)
    graph.replay()
    probe.equal(result.tolist(), [0.0, 2.0, 4.0, 6.0], f"what a graph computes after {name}")
