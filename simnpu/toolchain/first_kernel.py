"""Runs one kernel on the simulated NPU, for what it leaves behind: the header of all launchers, precompiled.

Run once per machine after the kernel compiler was built, so that no program waits for it.
"""

from __future__ import annotations

import torch
import torch_npu  # noqa: F401 - brings the device
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]


@triton.jit
def count(out, SIZE: tl.constexpr):
    tl.store(out + tl.arange(0, SIZE), tl.arange(0, SIZE))


if __name__ == "__main__":
    counted = torch.empty(8, dtype=torch.int32, device="npu")
    count[(1,)](counted, SIZE=8)  # pyright: ignore[reportArgumentType]
    assert counted.tolist() == list(range(8)), f"the kernel counted {counted.tolist()}"
