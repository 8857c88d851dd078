"""Every way of importing torch._dynamo, or a part of it, fires the trigger before the import returns.

Nobody imports Dynamo by one agreed statement: libraries import a sub-module, `torch` itself resolves the attribute
lazily, and building an optimizer pulls it in. NPU setup is complete after each of them; NPU Inductor and the device
stay untouched.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 180
# releases = ">=2.7.1"
# ///

import importlib

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

ROUTES = {
    "import": "import torch._dynamo",
    "from_torch": "from torch import _dynamo",
    "import_config": "import torch._dynamo.config",
    "from_dynamo": "from torch._dynamo import config",
    "import_registry": "import torch._dynamo.backends.registry",
    "import_device_interface": "import torch._dynamo.device_interface",
    "import_inductor": "import torch._inductor.compile_fx",
    "import_module": "importlib.import_module('torch._dynamo')",
    "dunder_import": "__import__('torch._dynamo.utils')",
    "attribute": "torch._dynamo",
    "list_backends": "torch.compiler.list_backends()",
    "compiler_reset": "torch.compiler.reset()",
    "compiler_disable": "torch.compiler.disable(len)",
    "optimizer": "torch.optim.SGD([torch.zeros(1, requires_grad=True)])",
}


def follow(statement):
    exec(statement, {"torch": torch, "importlib": importlib})

    probe.modules.present("torch._dynamo")
    probe.check(subject.dynamo_setup.has_run, "NPU setup has run when the statement returns")
    from torch._dynamo.device_interface import get_interface_for_device

    found = get_interface_for_device("npu").device_count()
    probe.equal(found, torch_npu.npu.device_count(), "devices that Dynamo counts for npu")
    probe.modules.absent("torch_npu._inductor")
    probe.device_untouched()


probe.compilers_absent()
probe.each(ROUTES, follow, forked=True)  # the first import of Dynamo happens once in a process
