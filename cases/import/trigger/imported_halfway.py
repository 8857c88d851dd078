"""When Dynamo came in with torch, before torch_npu, its setup runs inside `import torch_npu`.

The user's first import may be a library that needs only torch._dynamo.config. There is no later import of Dynamo to
wait for then, so waiting for one would leave NPU tensors unpatched for ever.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 180
# releases = ">=2.7.1"
# ///

from harness import probe
from cases import _subject as subject

import torch

STATEMENTS = {
    "import_config": "import torch._dynamo.config",
    "from_dynamo": "from torch._dynamo import config",
    "import_registry": "import torch._dynamo.backends.registry",
    "import_inductor": "import torch._inductor.compile_fx",
    "list_backends": "torch.compiler.list_backends()",
    "compile": "torch.compile(len, backend='eager')",
}


def import_torch_npu_after(statement):
    exec(statement, {"torch": torch})
    probe.modules.present("torch._dynamo")
    probe.modules.absent("torch_npu")

    import torch_npu

    probe.check(subject.dynamo_setup.has_run, "NPU setup has run when `import torch_npu` returns")
    interface = torch._dynamo.device_interface.get_interface_for_device("npu")
    probe.equal(interface.device_count(), torch_npu.npu.device_count(), "devices that Dynamo counts for npu")
    probe.modules.absent("torch_npu._inductor")
    probe.device_untouched()


# Both imports happen once in a process, so each statement gets a copy of this one, in which torch alone is loaded.
probe.each(STATEMENTS, import_torch_npu_after, forked=True)
