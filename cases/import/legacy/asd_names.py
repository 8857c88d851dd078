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

for name in ("set_asd_loss_scale", "register_asd_hook"):
    probe.check(callable(getattr(torch_npu.utils, name, None)), f"torch_npu.utils.{name} is a function")
probe.same(torch_npu.matmul_checksum, torch_npu.asd.checksum._matmul_checksum, "torch_npu.matmul_checksum")


def is_the_operator(name):
    for owner in (torch_npu._afd, torch_npu):
        probe.same(getattr(owner, name, None), getattr(torch.ops.npu, name), f"{owner.__name__}.{name}")


schedulers = [f"{kind}_worker_scheduler{in_place}" for kind in ("attention", "ffn") for in_place in ("", "_")]
probe.each(schedulers, is_the_operator)
probe.check(callable(torch_npu._afd.create_schedule_context_holder), "torch_npu._afd.create_schedule_context_holder")
probe.modules.absent("torch_npu._C._afd")
probe.compilers_absent()
probe.device_untouched()
