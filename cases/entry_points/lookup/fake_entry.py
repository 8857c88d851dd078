"""An entry point that imports torch_npu while torch resolves it ends in one registration, of the loaded function.

A vendored or editable copy of torch_npu brings entry-point objects of its own making. What counts is the module they
name: torch registers the loaded callable itself, so torch_npu must leave the name alone.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { name = ["npu", "npugraph_ex"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

from harness import probe
from cases import _subject as subject

import torch
from torch._dynamo.backends import registry

probe.modules.absent("torch_npu")
name = probe.param("name")
loads = []


class FakeEntryPoint:
    module = "torch_npu.dynamo"
    attr = f"_{name}_backend_entrypoint"

    def load(self):
        loads.append(name)
        import torch_npu.dynamo

        return getattr(torch_npu.dynamo, self.attr)


FakeEntryPoint.name = name
registry._BACKENDS[name] = FakeEntryPoint()
registry._COMPILER_FNS.pop(name, None)

backend = registry.lookup_backend(name)
probe.equal(loads, [name], "loads of the entry point")
probe.equal(backend.__name__, f"_{name}_backend_entrypoint", "name of the function found")
probe.same(registry._COMPILER_FNS[name], backend, f"{name} in torch's table")

subject.register_backends()
probe.same(registry._COMPILER_FNS[name], backend, f"{name} in torch's table after another registration")
probe.same(registry.lookup_backend(name), backend, f"{name} looked up again")
probe.equal(loads, [name], "loads of the entry point in the end")
