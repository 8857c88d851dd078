"""Names of torch_npu.contrib that torch.nn gets: lazy references, since nobody may ever use them."""

from __future__ import annotations

from typing import Any

import torch
import torch_npu._init.patches.monkey_patches as this
import torch_npu.contrib  # so that it is there as an attribute; loads with its first use
from torch_npu_lazy.wheel.references import LazyReference

_apply_other_patches = this._apply_patches


def _apply_patches(monkey_patches: Any) -> None:
    """Add the names to torch.nn. The wheel's own table holds the modules that are not to be loaded; others, such as
    transfer_to_npu's, are applied as they are."""
    if monkey_patches is not this.all_monkey_patches:
        _apply_other_patches(monkey_patches)
        return
    home = torch_npu.contrib.__name__
    torch.nn.functional.dropout_with_byte_mask = LazyReference(
        f"{home}.function.npu_functional", "dropout_with_byte_mask"
    )
    torch.nn.DropoutWithByteMask = LazyReference(f"{home}.module.npu_modules", "DropoutWithByteMask")  # type: ignore[attr-defined]
