"""A compile or export function that was bound before torch_npu was imported works, with NPU setup in force.

`from torch.export import export` at the top of a file runs before the backend is there when autoload is off. What the
name then refers to must give right results and must have started the NPU's Dynamo setup, not NPU Inductor.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 180
# releases = ">=2.7.1"
# ///

from harness import probe
from cases import _subject as subject

import torch
from torch import compile as bound_compile
from torch.compiler import list_backends
from torch.export import export

import torch_npu


class AddOne(torch.nn.Module):
    def forward(self, x):
        return x + 1


def call(function):
    x = torch.arange(3.0)
    match function:
        case "compile":
            result = bound_compile(AddOne(), backend="eager", fullgraph=True)(x)
        case "compile_decorator":
            result = bound_compile(backend="eager")(AddOne())(x)
        case "export":
            result = export(AddOne(), (x,)).module()(x)
        case "export_strict":
            result = export(AddOne(), (x,), strict=True).module()(x)
        case _:
            listed = list_backends(exclude_tags=None)
            probe.check(
                {"npu", "npugraph_ex", "npugraphs"} <= set(listed), "the NPU backends are listed", listed=listed
            )
            result = x + 1
    probe.close(result, x + 1, "the result")
    probe.check(subject.dynamo_setup.has_run, "NPU setup has run")
    probe.modules.absent("torch_npu._inductor")


FUNCTIONS = ("compile", "compile_decorator", "export", "export_strict", "list_backends")
probe.each(FUNCTIONS, call, forked=True)  # setup happens once in a process
