"""What the chip can do, known from its name: asking makes the process no user of the NPU, so it may fork afterwards."""

from __future__ import annotations

import torch_npu as _torch_npu


def is_bf16_supported(including_emulation: bool = False) -> bool:  # noqa: ARG001 - torch's signature
    """Whether the NPU computes in bfloat16."""
    return _torch_npu._C._npu_is_bf16_supported()


def is_support_inf_nan() -> bool:
    """Whether the NPU computes infinities and NaNs, instead of saturating."""
    return _torch_npu._C._npu_is_support_inf_nan()
