"""Runs what triton.language.extra.cann adds on the simulated NPU; prints how far each is from PyTorch's."""

from __future__ import annotations

import json

import torch
import torch_npu  # noqa: F401 - brings the device
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]
from triton.language.extra.cann import libdevice  # pyright: ignore[reportMissingImports]

SIZE = 1024


@triton.jit
def functions(x, y, erfc, erfcx, tanh, fmod, product, rounded, SIZE: tl.constexpr):  # noqa: PLR0917 - a kernel
    at = tl.arange(0, SIZE)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(erfc + at, libdevice.erfc(a))
    tl.store(erfcx + at, libdevice.erfcx(a))
    tl.store(tanh + at, libdevice.fast_tanhf(a))
    tl.store(fmod + at, libdevice.fmod(a, b))
    tl.store(product + at, libdevice.mul_rn(a, b))
    tl.store(rounded + at, libdevice.llrint(a))


x = torch.linspace(-6, 9, SIZE)
x[:8] = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.0, 3.0])
y = torch.linspace(-3, 4, SIZE)
places = [torch.empty(SIZE, device="npu") for _ in range(5)] + [torch.empty(SIZE, dtype=torch.int64, device="npu")]
functions[(1,)](x.npu(), y.npu(), *places, SIZE=SIZE)  # pyright: ignore[reportArgumentType]
erfc, erfcx, tanh, fmod, product, rounded = (place.cpu() for place in places)
exact = x.double()


def off(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float(((found.double() - wanted) / wanted.abs().clamp_min(1e-30)).abs().max())


print(
    json.dumps(
        {
            "erfc": off(erfc, torch.special.erfc(exact)),
            "erfcx": off(erfcx, torch.special.erfcx(exact)),
            "tanh": off(tanh, torch.tanh(exact)),
            "fmod": float((fmod - torch.fmod(x, y)).abs().max()),
            "mul_rn": float((product - x * y).abs().max()),
            "llrint": int((rounded - torch.round(x).long()).abs().max()),
        }
    )
)
