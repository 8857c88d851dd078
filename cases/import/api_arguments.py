"""A public function of torch that `import torch_npu` replaces accepts every argument that torch's own accepts.

The replacement serves the whole process, CPU work included. An argument it does not know turns a program that has
nothing to do with NPUs into a TypeError, on no other ground than that torch_npu was imported (which torch's autoload
does by itself).
"""

# /// script
# [tool.conformance]
# rule = "import/api/1"
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
#
# [tool.conformance.matrix]
# owner = ["torch", "torch.Tensor", "torch.nn.Module", "torch.serialization", "torch.utils.dlpack", "torch.distributed",
#          "torch.distributed.distributed_c10d", "torch.utils.data.DataLoader", "torch.multiprocessing.reductions"]
# ///

import inspect
import operator
import os

from harness import probe

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
import torch.distributed
import torch.multiprocessing.reductions
import torch.utils.dlpack

_, _, path = probe.param("owner").partition(".")
owner = operator.attrgetter(path)(torch) if path else torch
public = [name for name in vars(owner) if not name.startswith("_") or name.endswith("__")]
before = {name: getattr(owner, name) for name in public if inspect.isroutine(vars(owner)[name])}
probe.modules.absent("torch_npu")
probe.check(before, "there are functions to look at", count=len(before))

import torch_npu


def parameters(function):
    try:
        return inspect.signature(function).parameters
    except ValueError:  # a builtin without a signature
        return {}


lost = {}
for name, function in before.items():
    now = getattr(owner, name)
    accepted = parameters(now)
    if now is function or any(entry.kind is entry.VAR_KEYWORD for entry in accepted.values()):
        continue
    missing = [argument for argument in parameters(function) if argument not in accepted]
    if missing:
        lost[name] = missing
probe.equal(lost, {}, f"arguments that functions of {probe.param('owner')} no longer accept")
