"""Backend npugraphs takes no options: any is refused by name, whatever was set up before; an empty set is accepted.

A user who writes options={"max_autotune": True} or a mode expects them to do something. Dropped in silence, they hide
that he has chosen the wrong backend; refused only in some import orders, a program works or fails by chance.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { given = ["some", "none"] }
# needs = ["ops", "graph"]
# timeout = 180
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

import torch._dynamo


def compiled(**arguments):
    return torch.compile(lambda x: x + 1, backend="npugraphs", **arguments)(torch.ones(2))


def entry_point(**arguments):
    def returns_tuple(x):
        return (x + 1,)

    module = torch.fx.symbolic_trace(returns_tuple)
    return subject.npugraphs_entry_point(module, [torch.ones(2)], **arguments)(torch.ones(2))[0]


def cold():
    pass


def inductor_wrapper():
    torch.compile(lambda x: x + 1, backend="inductor")


def setup_done():
    compiled()


def judge(before):
    before()
    told = {}
    for way, argument, value in (
        (compiled, "options", {"max_autotune": True}),
        (compiled, "mode", "reduce-overhead"),
        (entry_point, "options", {"max_autotune": True}),
        (entry_point, "mode", "reduce-overhead"),
        (entry_point, "unheard_of", 1),
    ):
        torch.compiler.reset()
        try:
            way(**{argument: value})
        except Exception as error:
            # Dynamo wraps what a backend raises, and names its type.
            text = f"{type(error).__name__}: {error}"
            if argument not in text or "TypeError" not in text:
                told[f"{way.__name__} {argument}"] = text
        else:
            told[f"{way.__name__} {argument}"] = "no error"
    torch.compiler.reset()
    probe.close(compiled(), torch.full((2,), 2.0), "result of a compile afterwards")
    return told


if probe.param("given") == "none":
    for way in (compiled, entry_point):
        probe.close(way(), torch.full((2,), 2.0), f"result of {way.__name__}")
    for arguments in ({"options": {}}, {"options": None}, {"mode": "default"}, {"mode": None}):
        torch.compiler.reset()
        probe.close(compiled(**arguments), torch.full((2,), 2.0), f"result with {arguments}")
else:
    # Each order gets a copy of a process in which nothing but Dynamo is set up.
    orders = (cold, inductor_wrapper, setup_done)
    accepted = {before.__name__: probe.forked(judge, before) for before in orders}
    probe.equal(
        accepted, {before.__name__: {} for before in orders}, "arguments not refused by a TypeError naming them"
    )
