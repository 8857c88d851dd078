"""torch.npu.NPUGraph records work without running it; each replay then runs it on the memory that was recorded.

A graph that "replays" nothing leaves the last numbers in the output, which look right until the input changes. Shown
for torch.npu.graph, for capture_begin and capture_end, and for graphs that share a pool. None of it needs a compiler.
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


def context(graph, work, **arguments):
    with torch.npu.graph(graph, **arguments):
        probe.equal(torch.npu.is_current_stream_capturing(), True, "is_current_stream_capturing() in the block")
        return work()


def begin_and_end(graph, work, pool=None):
    stream = torch.npu.Stream()
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        graph.capture_begin(**({} if pool is None else {"pool": pool}))
        result = work()
        graph.capture_end()
    torch.npu.current_stream().wait_stream(stream)
    return result


probe.equal(torch.npu.is_current_stream_capturing(), False, "is_current_stream_capturing() at first")
for capture in (context, begin_and_end):
    name = capture.__name__
    x, out = torch.zeros(4, device="npu"), torch.full((4,), -1.0, device="npu")

    def work(x=x, out=out):
        out.copy_(x * 2 + 1)
        return out + 10

    graph = torch.npu.NPUGraph()
    with probe.raises(RuntimeError, "capture"):
        graph.replay()
    executed = probe.device_calls().get("aclmdlRIExecuteAsync", 0)
    made = capture(graph, work)
    probe.equal(torch.npu.is_current_stream_capturing(), False, f"is_current_stream_capturing() after {name}")
    probe.equal(out.tolist(), [-1.0] * 4, f"the output buffer after the capture by {name}")

    later = torch.npu.NPUGraph()
    sum_of_both = capture(later, lambda made=made, x=x: made + x, pool=graph.pool())
    probe.equal(later.pool(), graph.pool(), "the pool of a graph that was given another one's")
    for value in (1.0, 2.0, -3.0):
        x.fill_(value)
        graph.replay()
        probe.equal(out.tolist(), [value * 2 + 1] * 4, f"the output buffer after a replay at {value}, {name}")
        probe.equal(made.tolist(), [value * 2 + 11] * 4, f"the tensor made in the capture, at {value}, {name}")
        later.replay()
        probe.equal(sum_of_both.tolist(), [value * 3 + 11] * 4, f"what the second graph made, at {value}, {name}")
    probe.equal(probe.device_calls()["aclmdlRIExecuteAsync"] - executed, 6, f"replays, {name}")

    x.fill_(5.0)
    torch.npu.synchronize()
    probe.equal(out.tolist(), [-5.0] * 4, f"the output buffer without a replay, {name}")
    later.reset()
    with probe.raises(RuntimeError, "capture"):
        later.replay()
    graph.replay()
    probe.equal(out.tolist(), [11.0] * 4, f"the output buffer after the other graph is gone, {name}")
probe.compilers_absent()
