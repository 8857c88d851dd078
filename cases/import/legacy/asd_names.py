"""The names of silent-data-error detection and of attention-FFN disaggregation are there, and are the real functions.

Both belong to long training and serving jobs that call them rarely: a name that has gone shows hours later.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.10"
# ///

import torch
import torch_npu
from harness import probe

wrong = [
    name for name in ("set_asd_loss_scale", "register_asd_hook") if not callable(getattr(torch_npu.utils, name, 0))
]
probe.equal(wrong, [], "names that are no functions of torch_npu.utils")
probe.same(torch_npu.matmul_checksum, torch_npu.asd.checksum._matmul_checksum, "torch_npu.matmul_checksum")

wrong = []
for name in (
    "attention_worker_scheduler",
    "attention_worker_scheduler_",
    "ffn_worker_scheduler",
    "ffn_worker_scheduler_",
):
    operator = getattr(torch.ops.npu, name)
    wrong += [
        f"{owner.__name__}.{name}"
        for owner in (torch_npu._afd, torch_npu)
        if getattr(owner, name, None) is not operator
    ]
probe.equal(wrong, [], "names that are not the operator itself")
probe.check(callable(torch_npu._afd.create_schedule_context_holder), "torch_npu._afd.create_schedule_context_holder")
probe.modules.absent("torch_npu._C._afd")
probe.compilers_absent()
probe.device_untouched()
