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

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

received = []


def receive(*_, config_patches=None, compile_region_name=None, **__):
    received.append((config_patches, compile_region_name))


subject.fake_npu_inductor()
subject.fake_compile_fx(receive)
WAYS = {
    "plain": ({}, ({}, None)),
    "options": ({"options": {"max_autotune": True}}, ({"max_autotune": True}, None)),
    "mode": ({"mode": "max-autotune-no-cudagraphs"}, ({"max_autotune": True, "coordinate_descent_tuning": True}, None)),
    "name": ({"name": "region"}, ({}, "region")),
    "use_aoti": ({"options": {"use_aoti": True}}, ({"cpp_wrapper": True, "aot_inductor.package": True}, None)),
}
if "name" not in inspect.signature(torch.compile).parameters:  # torch before 2.12
    del WAYS["name"]


def compile_and_call(arguments, expected):
    x = torch.arange(3.0)
    result = torch.compile(lambda x: x + 1, backend="inductor", **arguments)(x)
    probe.close(result, x + 1, "the result")
    probe.equal(received, [expected], "settings and region name with which compile_fx was called")


ways = {way: calls for way, calls in WAYS.items() if (way == "use_aoti") == (probe.param("ways") == "use_aoti")}
probe.each(ways, compile_and_call, forked=True)  # a compiled graph is kept
