"""Loads and stores: masks, places known at run time only, block pointers, shapes."""

from __future__ import annotations

import torch
from language_cases import Case, compare, garbage
from language_device import run
from language_kernels import GENERATOR, kernel, normal, registering, whole, zeros

CASES: list[Case] = []
single = registering(CASES)


@single
def masked_load_and_store():
    for n in (1, 13, 64):
        x, o = normal(64), garbage(zeros(64))
        k = kernel(
            "x, o, n",
            """
            i = tl.arange(0, 64)
            a = tl.load(x + i, i < n, other=-1.5)
            tl.store(o + i, a, i < 50)
            """,
        )
        run(k, x, o, n)
        compare(o[:50], torch.where(torch.arange(64) < n, x, -1.5)[:50])
        compare(o[50:], garbage(zeros(64))[50:])


@single
def masked_load_of_every_type():
    for dtype in (torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int64, torch.bool):
        x = normal(64).to(dtype) if dtype.is_floating_point else whole(0, 2, 64).to(dtype)
        o = garbage(x)
        k = kernel(
            "x, o, n",
            """
            i = tl.arange(0, 64)
            tl.store(o + i, tl.load(x + i, i < n, other=0), i < 60)
            """,
        )
        run(k, x, o, 40)
        compare(o[:40], x[:40])
        compare(o[40:60], torch.zeros_like(x)[40:60])
        assert o[60:].view(torch.uint8).tolist() == [0x5A] * (4 * x.element_size())


@single
def scattered_mask():
    x, o = normal(64), garbage(zeros(64))
    k = kernel(
        "x, o",
        """
        i = tl.arange(0, 64)
        m = (i % 3 == 1) | (i > 60)
        tl.store(o + i, tl.load(x + i, m, other=7.0) + 1, i % 2 == 0)
        """,
    )
    run(k, x, o)
    i = torch.arange(64)
    expected = torch.where((i % 3 == 1) | (i > 60), x, 7.0) + 1
    compare(o, torch.where(i % 2 == 0, expected, garbage(zeros(64))))


@single
def indirect_load_and_store():
    x, o = normal(64), garbage(zeros(64))
    index = torch.randperm(64, generator=GENERATOR)
    k = kernel(
        "x, index, o, n",
        """
        i = tl.arange(0, 64)
        j = tl.load(index + i, i < n, other=0)
        tl.store(o + j, tl.load(x + j * 1, i < n) * 2, i < n)
        """,
    )
    run(k, x, index, o, 50)
    expected = garbage(zeros(64))
    expected[index[:50]] = x[index[:50]] * 2
    compare(o, expected)


@single
def adjacent_places_that_a_mask_leaves_out_may_lie_before_the_allocation():
    # A pooling's window as NPU Inductor writes it: few elements a block, the mask known for each of them only.
    x, o = normal(9, 9), garbage(zeros(9, 9))
    k = kernel(
        "x, o",
        """
        p = tl.program_id(0) * 2 + tl.arange(0, 2)
        row, column = p // 9, p % 9
        inside = (row - 1 >= 0) & (row - 1 < 9) & (column - 1 >= 0) & (column - 1 < 9)
        tl.store(o + p, tl.load(x + (-10 + p), inside & (p < 81), other=0.5), p < 81)
        """,
    )
    run(k, x, o, grid=(41,))
    expected = torch.full((9, 9), 0.5)
    expected[1:, 1:] = x[:-1, :-1]
    compare(o, expected)


@single
def places_that_a_mask_leaves_out_may_lie_anywhere():
    # Before the allocation, and far from all memory.
    x, o = normal(7, 7), garbage(zeros(7, 7))
    k = kernel(
        "x, o, n",
        """
        p = tl.arange(0, 64)
        row = p // 7 - 1
        above = tl.load(x + row * 7 + p % 7, (row >= 0) & (p < n), other=0.0)
        far = tl.load(x + (p % 7) * 1000000007, (p % 7 == 0) & (p < n), other=0.0)
        tl.store(o + p, above + far, p < n)
        """,
    )
    run(k, x, o, 49)
    expected = torch.zeros(7, 7)
    expected[1:] = x[:-1]
    expected[:, 0] += x[0, 0]
    compare(o, expected)


@single
def indirect_rows():
    x, o = normal(8, 16), garbage(zeros(8, 16))
    index = torch.randperm(8, generator=GENERATOR).int()
    k = kernel(
        "x, index, o",
        """
        r = tl.load(index + tl.arange(0, 8))
        c = tl.arange(0, 16)
        p = r[:, None] * 16 + c[None, :]
        tl.store(o + tl.arange(0, 8)[:, None] * 16 + c[None, :], tl.load(x + p))
        """,
    )
    run(k, x, index, o)
    compare(o, x[index.long()])


@single
def strided_and_transposed():
    x, o = normal(16, 32), garbage(zeros(32, 16))
    k = kernel(
        "x, o",
        """
        r = tl.arange(0, 16)
        c = tl.arange(0, 32)
        a = tl.load(x + r[:, None] * 32 + c[None, :])
        tl.store(o + c[:, None] * 16 + r[None, :], tl.trans(a))
        """,
    )
    run(k, x, o)
    compare(o, x.T.contiguous())
    y, p = normal(64), garbage(zeros(32))
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 32)
        tl.store(o + i, tl.load(x + 2 * i + 1))
        """,
        ),
        y,
        p,
    )
    compare(p, y[1::2].contiguous())


@single
def scalars_of_memory():
    x, o = normal(4), zeros(2)
    run(
        kernel(
            "x, o",
            """
        a = tl.load(x)
        b = tl.load(x + 3)
        tl.store(o, a + b)
        if a > b:
            tl.store(o + 1, a)
        else:
            tl.store(o + 1, b)
        """,
        ),
        x,
        o,
    )
    compare(o, torch.stack([x[0] + x[3], torch.maximum(x[0], x[3])]))


BLOCK = """
p = tl.make_block_ptr(x, (n, m), (m, 1), (r, 0), (16, 16), (1, 0))
q = tl.make_block_ptr(o, (m, n), (n, 1), (0, r), (16, 16), (1, 0))
for k in range(0, m, 16):
    a = tl.load(p, boundary_check=(0, 1), padding_option="zero")
    tl.store(q, tl.trans(a) * 2, boundary_check=(0, 1))
    p = tl.advance(p, (0, 16))
    q = tl.advance(q, (16, 0))
"""


@single
def block_pointers():
    for n, m in ((16, 32), (13, 21), (1, 1), (16, 40)):
        x, o = normal(n, m), garbage(zeros(m, n))
        run(kernel("x, o, n, m, r", BLOCK), x, o, n, m, 0)
        compare(o, (x * 2).T.contiguous())


@single
def a_store_is_seen_by_a_later_load():
    x, o = normal(32), zeros(32)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 32)
        a = tl.load(x + i)
        tl.store(x + i, a * 2)
        b = tl.load(x + i)
        tl.store(o + i, a + b)
        """,
        ),
        x_ := x.clone(),
        o,
    )
    compare(o, x + x * 2)
    compare(x_, x * 2)


@single
def big_tile():
    x, y, o = normal(65536), normal(65536), garbage(zeros(65536))
    run(
        kernel(
            "x, y, o",
            """
        i = tl.arange(0, 65536)
        a = tl.load(x + i)
        b = tl.load(y + i)
        tl.store(o + i, tl.where(a > b, a - b, a * b))
        """,
        ),
        x,
        y,
        o,
    )
    compare(o, torch.where(x > y, x - y, x * y))


@single
def one_element():
    x, o = normal(1), zeros(1)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 1)
        tl.store(o + i, tl.sum(tl.load(x + i), 0) + tl.load(x + i))
        """,
        ),
        x,
        o,
    )
    compare(o, x * 2)


@single
def three_dimensions():
    x, o = normal(4, 8, 16), garbage(zeros(4, 8, 16))
    body = """
        i = tl.arange(0, 4)[:, None, None] * 128 + tl.arange(0, 8)[None, :, None] * 16 + tl.arange(0, 16)[None, None, :]
        m = (tl.arange(0, 4) < n)[:, None, None] & (tl.arange(0, 16) < 11)[None, None, :]
        tl.store(o + i, tl.load(x + i, m, other=2.0))
        """
    run(kernel("x, o, n", body), x, o, 3)
    expected = torch.full_like(x, 2.0)
    expected[:3, :, :11] = x[:3, :, :11]
    compare(o, expected)
