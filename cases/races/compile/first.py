"""Eight threads that compile for the first time at once, for the CPU and the NPU, get right results from one setup.

A server that warms its workers in parallel has no quiet moment in which to set up. Each thread compiles a function of
its own, with one of two backends, and calls it, forward and backward, on its device.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import collections

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

THREADS = 8
start = probe.gate("all threads are there", parties=THREADS)
run_step = subject.setup_step
applied = collections.Counter()


def step(name, setup):
    def counted():
        applied[name] += 1
        probe.jitter()
        setup()

    run_step(name, counted)


def work(number):
    device, backend = ("cpu", "npu")[number % 2], ("eager", "aot_eager")[number // 2 % 2]

    def function(x):
        return (x * (number + 1)).sin().sum(-1) - number

    start.meet()
    x = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    result = compiled(x)
    result.sum().backward()
    return result.detach().cpu(), x.grad.cpu()


with subject.replaced("setup_step", step):
    threads = [probe.thread(work, number) for number in range(THREADS)]
    results = [thread.join(60) for thread in threads]

x = torch.arange(6.0).reshape(2, 3)
for number, (result, gradient) in enumerate(results):
    expected = (x * (number + 1)).sin().sum(-1) - number
    probe.close(result, expected, f"result of thread {number}", rtol=1e-4, atol=1e-4)
    expected = (x * (number + 1)).cos() * (number + 1)
    probe.close(gradient, expected, f"gradient of thread {number}", rtol=1e-4, atol=1e-4)
probe.check({"backends", "trace_rules"} <= applied.keys(), "the steps were seen", steps=[*applied])
probe.equal(dict(applied), dict.fromkeys(applied, 1), "times that each step was applied")
probe.check(subject.dynamo_setup.has_run, "the setup has run")
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
