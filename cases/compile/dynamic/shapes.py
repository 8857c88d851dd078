"""Changing shapes on the NPU compile as often as on the CPU, and give right results, however dynamism is asked for.

Automatic, by mark_dynamic, by dynamic=True or False: the number of compilations is what users tune. A device on which
each length is compiled anew, or an unwanted specialisation goes unnoticed, makes a server stall at each new length.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

import torch._dynamo
from torch._dynamo.testing import CompileCounterWithBackend

LENGTHS = (4, 4, 5, 6, 9, 5)


def attend(x, weight):
    return (x @ weight).softmax(0) * x.shape[0]


def specialises(x, weight):
    return attend(x, weight) if x.shape[0] > 5 else attend(x, weight) + 1


def mark(x):
    torch._dynamo.mark_dynamic(x, 0)


def static(x):
    torch._dynamo.mark_static(x, 0)


WAYS = {
    "automatic": ({}, None),
    "dynamic=True": ({"dynamic": True}, None),
    "dynamic=False": ({"dynamic": False}, None),
    "mark_dynamic": ({}, mark),
    "mark_static": ({}, static),
}


def compilations(function, device, backend, arguments, marking):
    """Number of graphs compiled for LENGTHS; the results are checked."""
    torch.compiler.reset()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(function, backend=counter, **arguments)
    for length in LENGTHS:
        x, weight = torch.randn(length, 3), torch.randn(3, 2)
        placed = x.to(device)
        if marking is not None:
            marking(placed)
        result = compiled(placed, weight.to(device))
        what = f"{function.__name__} for length {length} on {device}, {backend}, {arguments}"
        probe.close(result, function(x, weight), what, rtol=1e-4, atol=1e-5)
    return counter.frame_count


counts = {}
for way, (arguments, marking) in WAYS.items():
    for backend in ("eager", "aot_eager") if way in ("automatic", "mark_dynamic") else ("eager",):
        # A branch on a length is what mark_dynamic is there to refuse.
        for function in (attend,) if way == "mark_dynamic" else (attend, specialises):
            on_cpu, on_npu = (compilations(function, device, backend, arguments, marking) for device in ("cpu", "npu"))
            counts[f"{way} {backend} {function.__name__}"] = (on_cpu, on_npu)
probe.note("compilations (CPU, NPU)", counts)
probe.equal(
    {way: npu for way, (_, npu) in counts.items()}, {way: cpu for way, (cpu, _) in counts.items()}, "compilations"
)
probe.equal(counts["dynamic=True eager attend"][1], 1, "compilations with dynamic=True")
probe.equal(counts["mark_dynamic eager attend"][1], 1, "compilations with mark_dynamic")

torch.compiler.reset()
refusing = torch.compile(specialises, backend="eager")
x = torch.randn(4, 3, device="npu")
torch._dynamo.mark_dynamic(x, 0)
short = torch.compile(lambda x: x * 2 if x.shape[0] == 4 else x, backend="eager")
with probe.raises(Exception, "(?i)specializ|constraint|dynamic"):
    short(x)
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
