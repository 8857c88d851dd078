"""Compiling works in a thread, in a forked child and in a spawned one, whatever the parent has compiled before.

Data loaders fork, servers compile in worker threads, launchers spawn. A forked child inherits finished or unstarted
setup and must be able to use it, on the CPU at least; a spawned one and a thread may use the device.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { parent = ["cold", "compiled"] }
# needs = ["ops"]
# timeout = 180
# releases = ">=2.7.1"
# ///

import json

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

# Shared with the spawned interpreter.
WORK = """
def work(device, backward=False):
    import torch

    found = {}
    for backend in ("eager", "aot_eager"):
        x = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
        compiled = torch.compile(lambda x: (x * x).sin().sum(-1) + 1, backend=backend, fullgraph=True)
        result = compiled(x)
        if backward:
            result.sum().backward()
        found[backend] = [result.tolist(), x.grad.tolist() if backward else None]
    return found
"""
namespace = {}
exec(WORK, namespace)
work = namespace["work"]

x = torch.arange(6.0).reshape(2, 3)
expected, gradient = (x * x).sin().sum(-1) + 1, (x * x).cos() * 2 * x


def judge(where, found):
    for backend, (result, found_gradient) in found.items():
        probe.close(torch.tensor(result), expected, f"result of {backend} {where}", rtol=1e-4, atol=1e-5)
        if found_gradient is not None:
            probe.close(torch.tensor(found_gradient), gradient, f"gradient of {backend} {where}", rtol=1e-4, atol=1e-4)


def setup_has_run():
    return subject.dynamo_setup.has_run


# torch refuses a backward pass in a child whose parent has made one: only forward passes before and in the children.
def in_child():
    return work("cpu"), setup_has_run()


if probe.param("parent") == "compiled":
    judge("in the parent", work("cpu"))
probe.equal(setup_has_run(), probe.param("parent") == "compiled", "Dynamo setup has run in the parent")
for turn in ("first", "second"):
    found, ran = probe.forked(in_child)
    judge(f"in the {turn} forked child", found)
    probe.equal(ran, True, f"Dynamo setup has run in the {turn} forked child")
probe.equal(
    setup_has_run(), probe.param("parent") == "compiled", "Dynamo setup has run in the parent after the children"
)

judge("in a thread, on the CPU", probe.thread(work, "cpu", True).join())
judge("in a thread, on the NPU", probe.thread(work, "npu", True).join())
judge("in the main thread after it, on the NPU", work("npu", True))
probe.equal(setup_has_run(), True, "Dynamo setup has run")

if probe.param("parent") == "compiled":
    main = f"import torch_npu\n{WORK}\nimport json, torch\nprint(json.dumps(work('npu', True)))"
    spawned = probe.python(main)
    judge("in a fresh interpreter, on the NPU", json.loads(spawned.stdout.splitlines()[-1]))
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
