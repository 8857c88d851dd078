"""The names of silent-data-error detection and of attention-FFN disaggregation are there, and are the real functions.

Both belong to long training and serving jobs that call them rarely: a name that has gone shows hours later.
"""

# /// script
# [tool.conformance]
# rule = "import/legacy/2"
# level = "must"
# matrix = { family = ["asd", "afd"] }
# timeout = 60
# releases = ">=2.13"
# ///

import torch
import torch_npu
from harness import probe

if probe.param("family") == "asd":
    probe.check(callable(torch_npu.utils.set_asd_loss_scale), "torch_npu.utils.set_asd_loss_scale")
    probe.check(callable(torch_npu.utils.register_asd_hook), "torch_npu.utils.register_asd_hook")
    probe.same(torch_npu.matmul_checksum, torch_npu.asd.checksum._matmul_checksum, "torch_npu.matmul_checksum")
else:
    for name in (
        "attention_worker_scheduler",
        "attention_worker_scheduler_",
        "ffn_worker_scheduler",
        "ffn_worker_scheduler_",
    ):
        operator = getattr(torch.ops.npu, name)
        probe.same(getattr(torch_npu._afd, name), operator, f"torch_npu._afd.{name}")
        probe.same(getattr(torch_npu, name), operator, f"torch_npu.{name}")
    probe.check(
        callable(torch_npu._afd.create_schedule_context_holder), "torch_npu._afd.create_schedule_context_holder"
    )
    probe.modules.absent("torch_npu._C._afd")
probe.compilers_absent()
probe.device_untouched()
