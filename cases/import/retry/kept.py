"""While Dynamo setup keeps failing, each compile, export and NPU backend says why, and the first after the cure works.

`import torch._dynamo` may be somebody else's import, inside a library that swallows errors. Whoever then compiles for
the NPU has to see the real cause, not a half-made module or rules silently missing from the graph.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 300
# releases = ">=2.7.1"
# ///

import contextlib
import importlib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
import torch_npu
from harness import probe
from torch_npu.utils import _dynamo as npu_dynamo

run_step = npu_dynamo._run_dynamo_setup_step
CAUSE = "the disk with the backends is away"
failing = [True]


def fail_in_backends(name, setup):
    if name == "backends" and failing:
        raise OSError(CAUSE)
    run_step(name, setup)


npu_dynamo._run_dynamo_setup_step = fail_in_backends
with contextlib.suppress(OSError):  # it may be raised here, or kept for the first use
    import torch._dynamo


class AddOne(torch.nn.Module):
    def forward(self, x):
        return x + 1


def npu_entry_point(graph, inputs):
    return torch_npu.dynamo._npu_backend_entrypoint(graph, inputs)


x = torch.ones(3)
ways = {
    "compile": lambda: torch.compile(AddOne(), backend="eager", fullgraph=True)(x),
    "compile_inductor": lambda: torch.compile(AddOne(), backend="inductor"),
    "export": lambda: torch.export.export(AddOne(), (x,), strict=True),
    "backend": lambda: npu_entry_point(torch.fx.symbolic_trace(AddOne()), [x]),
}


def said(way):
    """The messages of the error that `way` ends in and of its causes."""
    try:
        ways[way]()
    except Exception as error:
        messages, seen = [], error
        while seen is not None:
            messages.append(f"{type(seen).__name__}: {seen}")
            seen = seen.__cause__ or seen.__context__
        return messages
    return ["no error"]


def judge(way):
    for attempt in ("first", "second"):
        messages = said(way)
        if not any(CAUSE in message for message in messages):
            return f"the {attempt} try says: {messages[0][:300]}"
    failing.clear()
    importlib.import_module("torch._dynamo")
    result = ways["compile"]()
    if result.tolist() != [2.0] * 3:
        return f"after the cure x + 1 gives {result}"
    return None if npu_dynamo._lazy_dynamo_setup.has_run else "after the cure the setup has not run"


wrong = {}
for way in ways:
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        try:
            problem = pool.submit(judge, way).result()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
    if problem is not None:
        wrong[way] = problem
probe.check(not wrong, "each way tells the cause, twice, and works once the cause is gone", **wrong)
