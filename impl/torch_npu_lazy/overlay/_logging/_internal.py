"""TORCH_LOGS for the C++ half, whenever torch_npu is imported: within the import of torch, which reads the variable
only at its end, there would be nothing to hand on yet."""

from __future__ import annotations

import contextlib
import os

import torch._logging._internal
import torch_npu._logging._internal as this

_hand_on = this._update_log_state_from_env


def _update_log_state_from_env() -> None:
    if os.environ.get("TORCH_LOGS") and "TORCH_NPU_LOGS" not in os.environ:
        # An unknown name: torch will say so itself.
        with contextlib.suppress(ValueError):
            torch._logging._internal._update_log_state_from_env()
    _hand_on()
