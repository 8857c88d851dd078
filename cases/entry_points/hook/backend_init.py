"""The backends carry torch's _dynamo_backend_init hook from torch 2.15 on, and do not carry it before.

With that hook torch itself prepares a backend before the first capture. On an older torch nothing would call it, and
its presence would tell code that asks for it that the backend is prepared.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.13"
# ///

import torch
import torch_npu
import torch_npu.dynamo
from harness import probe
from cases import _subject as subject

import torch._dynamo

new_enough = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 15)
found = torch._dynamo.lookup_backend("npu")
homes = {"the registered backend": found, "the entry point": subject.npu_entry_point}
carried = {what: hasattr(backend, "_dynamo_backend_init") for what, backend in homes.items()}
probe.equal(carried, dict.fromkeys(homes, new_enough), f"whether the hook is there on torch {torch.__version__}")
