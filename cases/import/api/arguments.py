"""A public function of torch that `import torch_npu` replaces accepts every argument that torch's own accepts.

The replacement serves the whole process, CPU work included. An argument it does not know turns a program that has
nothing to do with NPUs into a TypeError, on no other ground than that torch_npu was imported (which torch's autoload
does by itself).
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { functions = ["from_dlpack", "gather", "all_others"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import inspect

from harness import probe

import torch
import torch.distributed
import torch.multiprocessing.reductions
import torch.utils.data
import torch.utils.dlpack

owners = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.Module": torch.nn.Module,
    "torch.serialization": torch.serialization,
    "torch.utils.dlpack": torch.utils.dlpack,
    "torch.distributed": torch.distributed,
    "torch.distributed.distributed_c10d": torch.distributed.distributed_c10d,
    "torch.utils.data.DataLoader": torch.utils.data.DataLoader,
    "torch.multiprocessing.reductions": torch.multiprocessing.reductions,
}
alone = {"from_dlpack", "gather"}  # judged at points of their own
chosen = probe.param("functions")
before = {}
for path, owner in owners.items():
    public = [name for name in vars(owner) if not name.startswith("_") or name.endswith("__")]
    wanted = [name for name in public if (name == chosen if chosen in alone else name not in alone)]
    routines = {name: getattr(owner, name) for name in wanted if inspect.isroutine(vars(owner)[name])}
    probe.check(routines or chosen in alone, f"{path} has functions to look at", count=len(routines))
    before |= {(path, name): function for name, function in routines.items()}
probe.check(before, "there are functions to look at", count=len(before))
probe.modules.absent("torch_npu")

import torch_npu


def parameters(function):
    try:
        return inspect.signature(function).parameters
    except ValueError:  # a builtin without a signature
        return {}


lost = {}
for (path, name), function in before.items():
    now = getattr(owners[path], name)
    accepted = parameters(now)
    if now is function or any(entry.kind is entry.VAR_KEYWORD for entry in accepted.values()):
        continue
    missing = [argument for argument in parameters(function) if argument not in accepted]
    if missing:
        lost[f"{path}.{name}"] = missing
probe.equal(lost, {}, "arguments that functions no longer accept")
