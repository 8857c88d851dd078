"""Patches of torch.distributed: those of modules that `import torch` leaves out wait for their import."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch_npu._init.patches.distributed_patches as this
from torch_npu_lazy.core.layers import wrap
from torch_npu_lazy.core.trigger import when_imported


def _apply_public_api_aliases(torch: Any, torch_npu: Any) -> None:
    """Give torch.distributed the NPU's functions, now where the module is loaded, else when it is."""
    _keep_out_of_remaps(torch.distributed.distributed_c10d.batch_isend_irecv)
    for target, source in this._PUBLIC_API_ALIASES:
        home = f"torch.{_LATE_HOMES.get(target, '')}".rstrip(".")
        if home == "torch":
            this._assign_attr(torch, target, torch_npu, source)
        else:
            assign = partial(_assign, f"torch.{target}".removeprefix(f"{home}."), torch_npu, source)
            when_imported(home, assign, again=assign)


def _keep_out_of_remaps(original: Any) -> None:
    """Dynamo's table of collectives is about torch's function, as it is where the table was there before the patch."""

    def restore(module: Any) -> None:
        remaps, replaced = module.traceable_collective_remaps, module.legacy_batch_p2p_ops
        if replaced is not original and replaced in remaps:
            remaps[original] = remaps.pop(replaced)
            module.legacy_batch_p2p_ops = original

    when_imported("torch.distributed._functional_collectives", restore, again=restore)


_LATE_HOMES = {"distributed.nn.functional._AllGatherBase.backward": "distributed.nn.functional"}
"""By target, the module it is in, if `import torch` leaves that out."""


def _assign(target: str, torch_npu: Any, source: str, module: Any) -> None:
    this._assign_attr(module, target, torch_npu, source)


def _apply_sharded_grad_scaler_patch(torch: Any) -> None:
    """Have FSDP's gradient scaler be the NPU's."""
    del torch

    def replace(module: Any) -> None:
        from torch_npu.npu.amp.sharded_grad_scaler import _ShardedGradScaler

        module.ShardedGradScaler = _ShardedGradScaler

    when_imported("torch.distributed.fsdp.sharded_grad_scaler", replace, again=replace)


def _apply_wrapped_functions(torch: Any, torch_npu: Any) -> None:
    """Wrap what torchrun and the process groups use to meet."""
    ours = torch_npu.distributed.distributed_c10d
    wrap(torch.distributed.distributed_c10d, "rendezvous", ours._trigger_rendezvous_decorator)

    def patch(launcher: Any) -> None:
        wrap(launcher, "_get_addr_and_port", ours._trigger__get_addr_and_port_decorator)

    when_imported("torch.distributed.launcher.api", patch, again=patch)
