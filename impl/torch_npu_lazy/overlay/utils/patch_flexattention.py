"""flex_attention on the NPU: its check of devices is replaced when it is imported, not imported to be replaced."""

from __future__ import annotations

from typing import Any

import torch_npu.utils.patch_flexattention as this
from torch_npu_lazy.core.trigger import when_imported

_replace_the_check = this._patch_flex_attention_device


def _patch_flex_attention_device() -> None:
    """Have torch.nn.attention.flex_attention take tensors of the NPU, from its import on."""

    def again(module: Any) -> None:
        # The body has put torch's own check back, and left the mark that says it was replaced.
        module.__dict__.pop("_npu_device_patched", None)
        _replace_the_check()

    when_imported("torch.nn.attention.flex_attention", lambda _: _replace_the_check(), again=again)
