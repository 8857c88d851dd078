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

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

from harness import probe

import torch

statements = {
    "import_config": "import torch._dynamo.config",
    "from_dynamo": "from torch._dynamo import config",
    "import_registry": "import torch._dynamo.backends.registry",
    "import_inductor": "import torch._inductor.compile_fx",
    "list_backends": "torch.compiler.list_backends()",
    "compile": "torch.compile(len, backend='eager')",
}


def import_torch_npu_after(before):
    exec(statements[before], {"torch": torch})
    probe.modules.present("torch._dynamo")
    probe.modules.absent("torch_npu")

    import torch_npu
    from torch_npu.utils import _dynamo as npu_dynamo

    probe.check(npu_dynamo._lazy_dynamo_setup.has_run, "NPU setup has run when `import torch_npu` returns")
    probe.equal(
        torch._dynamo.device_interface.get_interface_for_device("npu").device_count(),
        torch_npu.npu.device_count(),
        "devices that Dynamo counts for npu",
    )
    probe.modules.absent("torch_npu._inductor")
    probe.device_untouched()


wrong = {}
for before in statements:
    # Both imports happen once in a process, so each statement gets a copy of this one, in which torch alone is loaded.
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        error = pool.submit(import_torch_npu_after, before).exception()
    if error is not None:
        wrong[before] = f"{type(error).__name__}: {error}"
probe.check(not wrong, "`import torch_npu` runs NPU setup when Dynamo is there, whatever loaded it", **wrong)
