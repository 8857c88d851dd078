"""The public entry functions of torch are the same objects before `import torch_npu`, after it, and after Dynamo setup.

Code keeps them: `from torch.export import export`, a decorator table, a pickled task, a mock. When the function
object is exchanged, names bound earlier go past the NPU, and two parts of one program compile by different rules.
"""

# /// script
# [tool.conformance]
# rule = "import/identity/1"
# level = "must"
# matrix = { moment = ["imported", "dynamo_set_up", "inductor_compiled"], name = [
#   "torch.compile", "torch.export.export", "torch.export.export_for_training", "torch.onnx.export",
#   "torch._TorchCompileWrapper.__init__",
# ] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import operator
import os

from harness import probe

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
import torch.export
import torch.onnx

ABSENT = "this torch has no such function"


def look_up(name):
    try:
        return operator.attrgetter(name.removeprefix("torch."))(torch)
    except AttributeError:
        return ABSENT


name, moment = probe.param("name"), probe.param("moment")
before = look_up(name)

import torch_npu

if moment != "imported":
    import torch._dynamo
if moment == "inductor_compiled":
    torch.compile(len, backend="inductor", options={"max_autotune": False})
probe.same(look_up(name), before, f"{name} once {moment}")
