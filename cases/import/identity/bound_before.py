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

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness import probe

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
from torch import compile as bound_compile
from torch.compiler import list_backends
from torch.export import export

import torch_npu
from torch_npu.utils import _dynamo as npu_dynamo


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
    probe.check(npu_dynamo._lazy_dynamo_setup.has_run, "NPU setup has run")
    probe.modules.absent("torch_npu._inductor")


wrong = {}
for function in ("compile", "compile_decorator", "export", "export_strict", "list_backends"):
    # Setup happens once in a process, so each function gets a copy of this one.
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        error = pool.submit(call, function).exception()
    if error is not None:
        wrong[function] = f"{type(error).__name__}: {error}"
probe.check(
    not wrong, "each function gives the right result, with NPU setup in force and without NPU Inductor", **wrong
)
