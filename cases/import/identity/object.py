"""The public entry functions of torch are the same objects before `import torch_npu`, after it, and after Dynamo setup.

Code keeps them: `from torch.export import export`, a decorator table, a pickled task, a mock. When the function
object is exchanged, names bound earlier go past the NPU, and two parts of one program compile by different rules.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.7.1"
# ///

import operator

from harness import probe

import torch
import torch.export
import torch.onnx

ABSENT = "this torch has no such function"
NAMES = (
    *("torch.compile", "torch.export.export", "torch.export.export_for_training", "torch.onnx.export"),
    "torch._TorchCompileWrapper.__init__",
)


def look_up(name):
    try:
        return operator.attrgetter(name.removeprefix("torch."))(torch)
    except AttributeError:
        return ABSENT


before = {name: look_up(name) for name in NAMES}
exchanged = {}


def compare(moment):
    for name, function in before.items():
        if look_up(name) is not function:
            exchanged[f"{name} once {moment}"] = look_up(name)


import torch_npu

compare("imported")
import torch._dynamo

compare("Dynamo is set up")
torch.compile(len, backend="inductor", options={"max_autotune": False})
compare("Inductor compiles")
probe.check(before["torch.compile"] is not ABSENT, "torch has a function to compare")
probe.check(not exchanged, "torch's entry functions are the objects that they were", **exchanged)
