"""A lazily exported name is listed before its first use, loaded by it, and then the same object ever after.

The three Python-defined interfaces of the top level drag in modules that few programs need. Until somebody uses one,
only its name may exist; a wrong name must fail as on any other module.
"""

# /// script
# [tool.conformance]
# rule = "import/exports/3"
# level = "must"
# matrix = { name = ["HiFloat8Tensor", "erase_stream", "matmul_checksum"], access = ["attribute", "from"] }
# timeout = 60
# releases = ">=2.13"
# ///

import importlib

import torch_npu
from harness import probe

name = probe.param("name")
home, attribute = {
    "HiFloat8Tensor": ("torch_npu.utils.hif8_tensor", "_HiFloat8Tensor"),
    "erase_stream": ("torch_npu.npu.utils", "_erase_stream"),
    "matmul_checksum": ("torch_npu.asd.checksum", "_matmul_checksum"),
}[name]

probe.check(name in dir(torch_npu), f"dir(torch_npu) lists {name} before use")
probe.check(name not in vars(torch_npu), f"{name} is not stored before use")
if name == "HiFloat8Tensor":
    probe.modules.absent("torch_npu.utils.hif8_tensor")

if probe.param("access") == "attribute":
    value = getattr(torch_npu, name)
else:
    namespace = {}
    exec(f"from torch_npu import {name}", namespace)
    value = namespace[name]

probe.same(value, getattr(importlib.import_module(home), attribute), f"torch_npu.{name}")
probe.same(vars(torch_npu).get(name), value, f"{name} is stored after use")
with probe.raises(AttributeError) as caught:
    torch_npu.no_such_name  # noqa: B018
text = str(caught.value)
probe.check("torch_npu" in text and "no_such_name" in text, "the error names module and attribute", error=text)
probe.compilers_absent()
probe.device_untouched()
