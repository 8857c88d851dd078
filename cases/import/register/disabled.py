"""With NPU Inductor's registration disabled, an Inductor compile for an NPU tensor fails, and none of it is loaded.

Vendors that bring an Inductor of their own disable torch_npu's. Making the compiled function is free; the call names
the device that nobody serves; and once the registration is enabled again, the next call goes for NPU Inductor.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import sys

import torch
import torch_npu
from harness import probe
from cases import _subject as subject


def subtract(x, y):
    return x - y


subject.disable_inductor()
compiled = torch.compile(subtract, backend="inductor")
probe.same(subject.inductor_is_loaded(), False, "whether NPU Inductor is initialised after torch.compile")
x, y = torch.tensor([3.0, 4.0]).npu(), torch.tensor([1.0, 5.0]).npu()
with probe.raises(Exception, match="npu"):
    compiled(x, y)
probe.same(subject.inductor_is_loaded(), False, "whether NPU Inductor is initialised after the call")
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
probe.close(subtract(x, y), torch.tensor([2.0, -1.0]), "x - y in eager mode")


class Asked(ImportError):
    pass


class Finder:
    """Notes that NPU Inductor is asked for, and stops there: how far it would get depends on the machine's tools."""

    asked = 0

    def find_spec(self, name, *_):
        if name == "torch_npu._inductor":
            Finder.asked += 1
            raise Asked("this is as far as the case goes")


sys.meta_path.insert(0, Finder())
subject.enable_inductor()
torch.compiler.reset()
with probe.raises(Exception):
    torch.compile(subtract, backend="inductor")(x, y)
probe.check(Finder.asked > 0, "the first call after enabling asks for NPU Inductor")
