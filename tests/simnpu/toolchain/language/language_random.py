"""Random numbers: Triton's generator, with the adapter's tl.umulhi."""

from __future__ import annotations

import torch
from language_cases import Case, compare
from language_device import run
from language_kernels import kernel, registering, zeros

CASES: list[Case] = []
single = registering(CASES)


def philox(seed: int, c0: int, signed: bool) -> list[int]:
    """Philox 4x32 with 10 rounds; signed: with the high half of a signed product, as the adapter computes tl.umulhi."""
    a, b, word = 0xD2511F53, 0xCD9E8D57, 0xFFFFFFFF

    def high(x: int, y: int) -> int:
        if signed:
            x, y = (v - 2**32 if v >= 2**31 else v for v in (x, y))
        return (x * y >> 32) & word

    c = [c0, 0, 0, 0]
    k0, k1 = seed & word, seed >> 32
    for _ in range(10):
        c = [high(b, c[2]) ^ c[1] ^ k0, (b * c[2]) & word, high(a, c[0]) ^ c[3] ^ k1, (a * c[0]) & word]
        k0, k1 = (k0 + 0x9E3779B9) & word, (k1 + 0xBB67AE85) & word
    return c


@single
def random_integers_are_philox():
    o = zeros(64, dtype=torch.int64)
    run(
        kernel(
            "o, seed",
            """
        i = tl.arange(0, 64)
        tl.store(o + i, tl.randint(seed, i).to(tl.uint32, bitcast=True).to(tl.int64))
        """,
        ),
        o,
        1234,
    )
    assert o.tolist() == [philox(1234, i, signed=True)[0] for i in range(64)]


@single
def four_random_integers():
    o = zeros(4, 64, dtype=torch.int64)
    body = "i = tl.arange(0, 64)\na, b, c, d = tl.randint4x(seed, i)\n" + "\n".join(
        f"tl.store(o + {64 * k} + i, {v}.to(tl.uint32, bitcast=True).to(tl.int64))" for k, v in enumerate("abcd")
    )
    run(kernel("o, seed", body), o, 77)
    assert o.T.tolist() == [philox(77, i, signed=True) for i in range(64)]


@single
def uniform_random_numbers():
    o = zeros(4096)
    run(
        kernel(
            "o, seed",
            """
        i = tl.arange(0, 4096)
        tl.store(o + i, tl.rand(seed, i))
        """,
        ),
        o,
        5,
    )
    bits = torch.tensor([philox(5, i, signed=True)[0] for i in range(4096)])
    bits = torch.where(bits >= 2**31, bits - 2**32, bits)
    compare(o, torch.where(bits < 0, -bits - 1, bits).float() * 4.6566127342e-10)
    assert o.min() >= 0
    assert o.max() < 1


@single
def normal_random_numbers():
    o = zeros(4096)
    run(
        kernel(
            "o, seed",
            """
        i = tl.arange(0, 4096)
        tl.store(o + i, tl.randn(seed, i))
        """,
        ),
        o,
        9,
    )
    assert o.isfinite().all()
    assert abs(o.mean()) < 0.1
    assert abs(o.std() - 1) < 0.1
