"""A lazily exported name is listed before its first use, loaded by it, and then the same object ever after.

The three Python-defined interfaces of the top level drag in modules that few programs need. Until somebody uses one,
only its name may exist; a wrong name must fail as on any other module.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { access = ["attribute", "from"] }
# timeout = 60
# releases = ">=2.10.0.post1"  # before, they were stored at once
# ///

import importlib

import torch_npu
from harness import probe

homes = {
    "HiFloat8Tensor": ("torch_npu.utils.hif8_tensor", "_HiFloat8Tensor"),
    "erase_stream": ("torch_npu.npu.utils", "_erase_stream"),
    "matmul_checksum": ("torch_npu.asd.checksum", "_matmul_checksum"),
}
probe.equal([name for name in homes if name not in dir(torch_npu)], [], "names that dir() leaves out before use")
probe.equal([name for name in homes if name in vars(torch_npu)], [], "names that are stored before use")
probe.modules.absent("torch_npu.utils.hif8_tensor")

values = {}
for name in homes:
    if probe.param("access") == "attribute":
        values[name] = getattr(torch_npu, name)
    else:
        exec(f"from torch_npu import {name}", values)

others = [
    name for name, (home, real) in homes.items() if values[name] is not getattr(importlib.import_module(home), real)
]
probe.equal(others, [], "names that are not the object of their home module")
probe.equal([name for name in homes if vars(torch_npu).get(name) is not values[name]], [], "names not stored by use")
with probe.raises(AttributeError) as caught:
    torch_npu.no_such_name  # noqa: B018
text = str(caught.value)
probe.check("torch_npu" in text and "no_such_name" in text, "the error names module and attribute", error=text)
probe.compilers_absent()
probe.device_untouched()
