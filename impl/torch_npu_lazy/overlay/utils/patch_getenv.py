"""os.getenv and os.environ.get log what is read only where somebody sees the log; elsewhere they stay Python's."""

from __future__ import annotations

import logging
import os

import torch_npu.utils.patch_getenv as this


def _observable() -> bool:
    # The logger is configured later in the import, from these variables.
    return any(name in os.environ for name in ("TORCH_NPU_LOGS", "TORCH_LOGS")) or this.loggerEnv.isEnabledFor(
        logging.INFO
    )


if not _observable():
    os.getenv = this._orig_getenv
    del os.environ.get  # of the object: its class has the real one
