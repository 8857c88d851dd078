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
import torch
import torch_npu
from harness import probe
from cases import _subject as subject

run_step = subject.setup_step
CAUSE = "the disk with the backends is away"
failing = [True]


def fail_in_backends(name, setup):
    if name == "backends" and failing:
        raise OSError(CAUSE)
    run_step(name, setup)


subject.replace("setup_step", fail_in_backends)
with contextlib.suppress(OSError):  # it may be raised here, or kept for the first use
    import torch._dynamo


class AddOne(torch.nn.Module):
    def forward(self, x):
        return x + 1


x = torch.ones(3)
ways = {
    "compile": lambda: torch.compile(AddOne(), backend="eager", fullgraph=True)(x),
    "compile_inductor": lambda: torch.compile(AddOne(), backend="inductor"),
    "export": lambda: torch.export.export(AddOne(), (x,), strict=True),
    "backend": lambda: subject.npu_entry_point(torch.fx.symbolic_trace(AddOne()), [x]),
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
        probe.check(any(CAUSE in message for message in messages), f"the {attempt} try tells the cause", said=messages)
    failing.clear()
    importlib.import_module("torch._dynamo")
    probe.close(ways["compile"](), x + 1, "compiled x + 1 after the cure")
    probe.check(subject.dynamo_setup.has_run, "the setup has run after the cure")


probe.each(list(ways), judge, forked=True)
