"""The ways in which torch itself calls the Inductor wrapper reach Inductor with the right settings.

`torch.compile(options={"use_aoti": True})` and a compile with a region name go through the wrapper with arguments
that a user never sees. They must arrive on a machine with an NPU as anywhere else. Inductor is replaced by a recorder
that runs the graph.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { ways = ["use_aoti", "others"] }
# timeout = 120
# releases = ">=2.10"
# ///

import inspect
import sys
import types
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness import probe

import torch
import torch_npu

import torch._inductor.compile_fx

npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: None
sys.modules["torch_npu._inductor"] = npu_inductor
received = []


def compile_fx(model, _inputs, config_patches=None, compile_region_name=None, **_):
    received.append((config_patches, compile_region_name))
    return model.forward


torch._inductor.compile_fx.compile_fx = compile_fx
WAYS = {
    "plain": ({}, ({}, None)),
    "options": ({"options": {"max_autotune": True}}, ({"max_autotune": True}, None)),
    "mode": ({"mode": "max-autotune-no-cudagraphs"}, ({"max_autotune": True, "coordinate_descent_tuning": True}, None)),
    "name": ({"name": "region"}, ({}, "region")),
    "use_aoti": ({"options": {"use_aoti": True}}, ({"cpp_wrapper": True, "aot_inductor.package": True}, None)),
}
if "name" not in inspect.signature(torch.compile).parameters:  # torch before 2.12
    del WAYS["name"]


def compile_and_call(way):
    arguments, expected = WAYS[way]
    x = torch.arange(3.0)
    result = torch.compile(lambda x: x + 1, backend="inductor", **arguments)(x)
    probe.close(result, x + 1, "the result")
    probe.equal(received, [expected], "settings and region name with which compile_fx was called")


wrong = {}
for way in WAYS:
    if (way == "use_aoti") == (probe.param("ways") == "use_aoti"):
        # A compiled graph is kept, so each way gets a copy of the process.
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            error = pool.submit(compile_and_call, way).exception()
        if error is not None:
            wrong[way] = f"{type(error).__name__}: {error}"
probe.check(not wrong, "the compiled function runs, and compile_fx gets the settings", **wrong)
