"""What a shell or a CI system has set for torch, torch_npu, Triton, CANN or the simulator changes no test: `CI=true`
alone makes Inductor refuse operators. What the machine needs (certificates, proxies, compilers) stays."""

from __future__ import annotations

import os

READ_BY_THE_TESTED = (
    *("TORCH", "PYTORCH", "INDUCTOR", "TRITON", "NPU", "ASCEND", "ACL", "HCCL", "SIMNPU_"),
    *("TASK_QUEUE", "FAST_RUN", "PYTHONWARNINGS", "PYTHONHASHSEED", "PYTHONPATH"),
)
KEPT = ("SIMNPU_CACHE", "SIMNPU_LLVM")  # where things are, not how they behave


def pytest_configure() -> None:
    for name in list(os.environ):
        if name == "CI" or (name.startswith(READ_BY_THE_TESTED) and name not in KEPT):
            del os.environ[name]
