"""Kernels as programs: memory, control flow, grids, atomics, random numbers, arguments, and what cannot be done."""

from __future__ import annotations

import math
import random
import textwrap

import torch
from language_cases import Case, Group, Output, Single, compare, garbage, jit
from language_device import Scalar, run
from torch import Tensor

_generator = torch.Generator().manual_seed(3)
CASES: list[Case] = []


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=_generator).to(dtype)


def whole(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.randint(low, high, shape, generator=_generator, dtype=torch.int64).to(dtype)


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


def single(check):
    """Registers a function as a case of its name."""
    CASES.append(Single(check.__name__.replace("_", " "), check))
    return check


def kernel(parameters: str, body: str):
    """A kernel with this text as its body, however far that is indented here."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return jit(f"@triton.jit\ndef kernel({parameters}):\n{lines}\n")


# --- memory ---


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
    index = torch.randperm(64, generator=_generator)
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
    index = torch.randperm(8, generator=_generator).int()
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


# --- grids and arguments ---


@single
def grids_of_one_to_three_dimensions():
    body = """
        a = tl.program_id(0)
        b = tl.program_id(1)
        c = tl.program_id(2)
        at = (a * tl.num_programs(1) + b) * tl.num_programs(2) + c
        tl.store(o + at, a * 10000 + b * 100 + c + 1)
        """
    k = kernel("o", body)
    for grid in ((7,), (3, 5), (2, 3, 4), (1, 1, 9)):
        full = (*grid, 1, 1)[:3]
        o = zeros(math.prod(grid), dtype=torch.int32)
        run(k, o, grid=grid)
        expected = [a * 10000 + b * 100 + c + 1 for a in range(full[0]) for b in range(full[1]) for c in range(full[2])]
        assert o.tolist() == expected


@single
def very_many_blocks():
    x, o = normal(65535), zeros(65535)
    run(
        kernel(
            "x, o",
            """
        b = tl.program_id(0)
        tl.store(o + b, tl.load(x + b) + b)
        """,
        ),
        x,
        o,
        grid=(65535,),
    )
    compare(o, x + torch.arange(65535))


@single
def each_block_has_its_own_scratch():
    x, o = normal(64, 128), zeros(64)
    run(
        kernel(
            "x, o",
            """
        b = tl.program_id(0)
        a = tl.load(x + b * 128 + tl.arange(0, 128))
        tl.store(o + b, tl.sum(tl.sort(a) * tl.arange(0, 128), 0))
        """,
        ),
        x,
        o,
        grid=(64,),
    )
    compare(o, (x.sort(1)[0] * torch.arange(128)).sum(1), (1e-4, 1e-3))


@single
def arguments_of_every_type():
    types = [
        ("i1", True),
        ("i8", -7),
        ("i64", 2**40 + 1),
        ("i16", -300),
        ("fp16", 1.5),
        ("bf16", -2.25),
        ("i1", False),
        ("fp64", 1 / 3),
        ("i32", -5),
        ("u8", 200),
        ("fp32", 0.1),
        ("u16", 60000),
        ("u32", 2**32 - 1),
        ("i8", 5),
        ("u64", 2**63 + 1),
    ]
    names = [f"a{k}" for k in range(len(types))]
    real = zeros(len(types), dtype=torch.float64)
    body = "\n".join(f"tl.store(o + {k}, {name}.to(tl.float64))" for k, name in enumerate(names))
    run(kernel(", ".join([*names, "o"]), body), *(Scalar(*t) for t in types), real)
    expected = [float(torch.tensor(v, dtype=torch.float32)) if t == "fp32" else float(v) for t, v in types]
    assert real.tolist() == expected
    # Pointers between them.
    x, o = normal(4), zeros(4)
    run(
        kernel(
            "a, x, b, o, c",
            """
        i = tl.arange(0, 4)
        tl.store(o + i, tl.load(x + i) * a + b + c)
        """,
        ),
        Scalar("i8", 3),
        x,
        Scalar("i1", True),
        o,
        Scalar("fp16", 0.5),
    )
    compare(o, x * 3 + 1 + 0.5)


@single
def constants_and_specialised_branches():
    k = kernel(
        "x, o, N: tl.constexpr, UP: tl.constexpr, F: tl.constexpr",
        """
        i = tl.arange(0, N)
        a = tl.load(x + i)
        if UP:
            a = a + 1
        else:
            a = a - 1
        tl.static_assert(N == 16)
        tl.store(o + i, F(a))
        """,
    )
    import triton.language as tl  # pyright: ignore[reportMissingImports]

    x = normal(16)
    for up, function, expected in ((True, tl.exp, (x + 1).exp()), (False, tl.abs, (x - 1).abs())):
        o = zeros(16)
        run(k, x, o, N=16, UP=up, F=function)
        compare(o, expected)


# --- control flow ---


@single
def loops_with_accumulators():
    x, o = normal(100), zeros(16)
    body = """
        acc = tl.zeros((16,), tl.float32)
        for k in range(0, n, 16):
            i = k + tl.arange(0, 16)
            acc += tl.load(x + i, i < n, other=0.0)
        tl.store(o + tl.arange(0, 16), acc)
        """
    run(kernel("x, o, n", body), x, o, 100)
    compare(o, torch.cat([x, zeros(12)]).view(7, 16).sum(0), (1e-5, 1e-5))


@single
def values_carried_by_a_loop_do_not_share_memory():
    # Each step's value is used in the next two: swapped, shifted, and the old one kept.
    o = zeros(3, 16)
    body = """
        i = tl.arange(0, 16)
        a = i.to(tl.float32)
        b = a * 10
        c = a * 100
        for k in range(0, n):
            t = a + k
            a = b
            b = c - a
            c = t
        tl.store(o + i, a)
        tl.store(o + 16 + i, b)
        tl.store(o + 32 + i, c)
        """
    for n in (0, 1, 2, 3, 7):
        run(kernel("o, n", body), o, n)
        a = torch.arange(16.0)
        b, c = a * 10, a * 100
        for k in range(n):
            t = a + k
            a = b
            b = c - a
            c = t
        compare(o, torch.stack([a, b, c]))


@single
def a_loop_keeps_what_it_was_before():
    x, o = normal(8, 16), zeros(3, 16)
    body = """
        i = tl.arange(0, 16)
        best = tl.load(x + i)
        second = best
        last = best
        for r in range(1, 8):
            v = tl.load(x + r * 16 + i)
            second = tl.where(v > best, best, tl.where((v > second) | (second == best), v, second))
            best = tl.maximum(best, v)
            last = v
        tl.store(o + i, best)
        tl.store(o + 16 + i, second)
        tl.store(o + 32 + i, last)
        """
    run(kernel("x, o", body), x, o)
    best, second = x[0], x[0]
    for r in range(1, 8):
        v = x[r]
        second = torch.where(v > best, best, torch.where((v > second) | (second == best), v, second))
        best = torch.maximum(best, v)
    compare(o, torch.stack([best, second, x[7]]))


@single
def a_loop_reads_what_it_loaded_before():
    x, o = normal(9, 16), zeros(16)
    body = """
        i = tl.arange(0, 16)
        before = tl.load(x + i)
        older = before
        acc = tl.zeros((16,), tl.float32)
        for r in range(1, 9):
            v = tl.load(x + r * 16 + i)
            acc = acc * 0.5 + v - before * 2 + older * 3
            older = before
            before = v
        tl.store(o + i, acc)
        """
    run(kernel("x, o", body), x, o)
    before, older, acc = x[0], x[0], torch.zeros(16)
    for r in range(1, 9):
        acc = acc * 0.5 + x[r] - before * 2 + older * 3
        older, before = before, x[r]
    compare(o, acc, (1e-5, 1e-5))


@single
def a_loop_in_a_loop_reads_what_it_sorted_before():
    x, o = normal(4, 16), zeros(16)
    body = """
        i = tl.arange(0, 16)
        before = tl.zeros((16,), tl.float32)
        acc = before
        for a in range(n):
            for r in range(4):
                v = tl.sort(tl.load(x + r * 16 + i))
                acc = acc + v * before + tl.cumsum(before, 0)
                before = v
        tl.store(o + i, acc)
        """
    run(kernel("x, o, n", body), x, o, 2)
    before, acc = torch.zeros(16), torch.zeros(16)
    for r in (*range(4), *range(4)):
        v = x[r].sort()[0]
        acc = acc + v * before + before.cumsum(0)
        before = v
    compare(o, acc, (1e-4, 1e-4))


@single
def online_softmax():
    x, o = normal(4, 200), zeros(4, 200)
    body = """
r = tl.program_id(0)
m = tl.full((1,), -float("inf"), tl.float32)
l = tl.zeros((1,), tl.float32)
for k in range(0, n, 64):
    i = k + tl.arange(0, 64)
    a = tl.load(x + r * n + i, i < n, other=-float("inf"))
    new = tl.maximum(m, tl.max(a, 0))
    l = l * tl.exp(m - new) + tl.sum(tl.exp(a - new), 0)
    m = new
for k in range(0, n, 64):
    i = k + tl.arange(0, 64)
    a = tl.load(x + r * n + i, i < n, other=0.0)
    tl.store(o + r * n + i, tl.exp(a - m) / l, i < n)
"""
    run(kernel("x, o, n", body), x, o, 200, grid=(4,))
    compare(o, x.softmax(1), (1e-5, 1e-6))


@single
def matrix_product_in_tiles():
    for dtype, tolerance in (
        (torch.float32, (1e-4, 1e-3)),
        (torch.float16, (1e-2, 2e-2)),
        (torch.bfloat16, (2e-2, 1e-1)),
    ):
        m, n, k = 40, 24, 50
        a, b, c = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype), zeros(m, n, dtype=dtype)
        body = """
i = tl.program_id(0) * 16 + tl.arange(0, 16)
j = tl.program_id(1) * 16 + tl.arange(0, 16)
acc = tl.zeros((16, 16), tl.float32)
for t in range(0, K, 16):
    k = t + tl.arange(0, 16)
    x = tl.load(a + i[:, None] * K + k[None, :], (i[:, None] < M) & (k[None, :] < K), other=0.0)
    y = tl.load(b + k[:, None] * N + j[None, :], (k[:, None] < K) & (j[None, :] < N), other=0.0)
    acc = tl.dot(x, y, acc)
tl.store(c + i[:, None] * N + j[None, :], acc.to(c.dtype.element_ty), (i[:, None] < M) & (j[None, :] < N))
"""
        run(kernel("a, b, c, M, N, K", body), a, b, c, m, n, k, grid=(3, 2))
        compare(c, (a.double() @ b.double()).to(dtype), tolerance)


@single
def while_and_nested_branches():
    o = zeros(1, dtype=torch.int32)
    body = """
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                if n > 1000000:
                    n = 1
                else:
                    n = 3 * n + 1
            steps += 1
        tl.store(o, steps)
        """
    for n in (1, 6, 27):
        run(kernel("o, n", body), o, n)
        steps, m = 0, n
        while m != 1:
            m = m // 2 if m % 2 == 0 else 3 * m + 1
            steps += 1
        assert o.item() == steps


@single
def nested_loops_and_static_range():
    o = zeros(16)
    body = """
        i = tl.arange(0, 16)
        acc = i.to(tl.float32)
        for a in range(n):
            inner = acc
            for b in range(a, n):
                inner = inner * 0.5 + b
            acc = acc + inner
        for c in tl.static_range(3):
            acc = acc * 2 + c
        tl.store(o + i, acc)
        """
    run(kernel("o, n", body), o, 4)
    acc = torch.arange(16.0)
    for a in range(4):
        inner = acc
        for b in range(a, 4):
            inner = inner * 0.5 + b
        acc = acc + inner
    for c in range(3):
        acc = acc * 2 + c
    compare(o, acc)


@single
def a_branch_that_yields_tensors():
    for n in (1, -1):
        x, o = normal(16), zeros(16)
        run(
            kernel(
                "x, o, n",
                """
            i = tl.arange(0, 16)
            a = tl.load(x + i)
            b = a
            if n > 0:
                a = a * 2
                b = b + a
            else:
                b = a - 1
            tl.store(o + i, a + b)
            """,
            ),
            x,
            o,
            n,
        )
        compare(o, (x * 2) + (x + x * 2) if n > 0 else x + (x - 1))


@single
def early_return():
    o = zeros(4)
    run(
        kernel(
            "o, n",
            """
        p = tl.program_id(0)
        if p >= n:
            return
        tl.store(o + p, 1.0 + p)
        """,
        ),
        o,
        2,
        grid=(4,),
    )
    compare(o, torch.tensor([1.0, 2.0, 0.0, 0.0]))


@single
def functions_that_return_tuples():
    x, o = normal(16), zeros(2, 16)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        a, b = twice_and_half(tl.load(x + i))
        tl.store(o + i, a)
        tl.store(o + 16 + i, b)
        """,
        ),
        x,
        o,
    )
    compare(o, torch.stack([x * 2, x * 0.5]))


@single
def noinline_functions_of_tensors():
    x, o = normal(16), zeros(16)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        tl.store(o + i, far(tl.load(x + i)))
        """,
        ),
        x,
        o,
    )
    compare(o, x * 3 + 1)


@single
def noinline_functions_of_scalars():
    x, o = normal(1), zeros(1)
    run(kernel("x, o", "tl.store(o, far(tl.load(x)))"), x, o)
    compare(o, x * 3 + 1)


@single
def functions_of_functions():
    x, o = normal(16), zeros(16)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        tl.store(o + i, multiply_add(largest(tl.load(x + i), 0.5), product(2.0, tl.load(x + i))))
        """,
        ),
        x,
        o,
    )
    a, b = torch.maximum(x, torch.tensor(0.5)), 2 * x
    compare(o, a * b + a + b)


# --- atomics ---

ATOMIC = """
    b = tl.program_id(0)
    i = tl.arange(0, 64)
    v = tl.load(x + b * 64 + i)
    old = tl.atomic_{name}(o + i, v, mask=i < n)
    tl.store(r + b * 64 + i, old, i < n)
    """


def atomic(name: str, dtype: torch.dtype, function) -> None:
    def check() -> None:
        x = whole(-9, 9, 3, 64).to(dtype)
        start = whole(-9, 9, 64).to(dtype)
        o, r = start.clone(), zeros(3, 64, dtype=dtype)
        run(kernel("x, o, r, n", ATOMIC.format(name=name)), x, o, r, 50, grid=(3,))
        expected, olds = start.clone(), []
        for b in range(3):
            olds.append(expected.clone())
            expected[:50] = function(expected, x[b])[:50]
        compare(o, expected)
        compare(r[:, :50], torch.stack(olds)[:, :50])

    CASES.append(Single(f"atomic {name} {str(dtype).removeprefix('torch.')}", check))


for _dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64):
    for _name, _function in (
        ("add", torch.add),
        ("max", torch.maximum),
        ("min", torch.minimum),
        ("xchg", lambda _, b: b),
    ):
        atomic(_name, _dtype, _function)
for _dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
    for _name, _function in (("and", torch.bitwise_and), ("or", torch.bitwise_or), ("xor", torch.bitwise_xor)):
        atomic(_name, _dtype, _function)


@single
def atomic_add_where_lanes_and_blocks_collide():
    x, o = whole(-5, 6, 512).float(), zeros(8)
    run(
        kernel(
            "x, o",
            """
        i = tl.program_id(0) * 64 + tl.arange(0, 64)
        tl.atomic_add(o + i % 8, tl.load(x + i))
        """,
        ),
        x,
        o,
        grid=(8,),
    )
    compare(o, x.view(64, 8).sum(0))


@single
def atomic_add_to_one_place_counts_blocks():
    o, r = zeros(1, dtype=torch.int32), zeros(1000, dtype=torch.int32)
    run(
        kernel(
            "o, r",
            """
        i = tl.arange(0, 1)
        old = tl.atomic_add(o + i, tl.full((1,), 1, tl.int32))
        tl.store(r + tl.program_id(0) + i, old)
        """,
        ),
        o,
        r,
        grid=(1000,),
    )
    assert o.item() == 1000
    assert r.tolist() == list(range(1000))


@single
def the_old_value_of_an_atomic_as_an_address():
    o, r = zeros(1, dtype=torch.int32), zeros(1000, dtype=torch.int32)
    run(
        kernel(
            "o, r",
            """
        old = tl.atomic_add(o, 1)
        tl.store(r + old, tl.program_id(0))
        """,
        ),
        o,
        r,
        grid=(1000,),
    )
    assert sorted(r.tolist()) == list(range(1000))


@single
def atomic_add_indirect_with_mask():
    x, o, j = normal(64), zeros(16), whole(0, 16, 64, dtype=torch.int64)
    run(
        kernel(
            "x, j, o, n",
            """
        i = tl.arange(0, 64)
        k = tl.load(j + i, i < n, other=0)
        tl.atomic_add(o + k, tl.load(x + i, i < n), mask=i < n)
        """,
        ),
        x,
        j,
        o,
        40,
    )
    compare(o, zeros(16).index_add(0, j[:40], x[:40]), (1e-5, 1e-5))


@single
def atomic_cas_scalar():
    for dtype in (torch.int32, torch.int64, torch.float32):
        o, r = torch.tensor([3, 4], dtype=dtype), zeros(2, dtype=dtype)
        kind = str(dtype).replace("torch.", "tl.")
        run(
            kernel(
                "o, r",
                f"""
            c = tl.full((1,), 3, {kind})
            v = tl.full((1,), 9, {kind})
            i = tl.arange(0, 1)
            tl.store(r + i, tl.atomic_cas(o + i, c, v))
            tl.store(r + 1 + i, tl.atomic_cas(o + 1 + i, c, v))
            """,
            ),
            o,
            r,
        )
        assert o.tolist() == [9, 4]
        assert r.tolist() == [3, 4]


@single
def atomic_max_and_min_of_negative_floats():
    x = torch.tensor([-1.0, 2.0, -3.0, 4.0, -5.0, 0.5, -0.25, 1.0])
    start = torch.tensor([-2.0, -2.0, 3.0, 3.0, -6.0, -0.5, 0.25, 1.0])
    o, p = start.clone(), start.clone()
    run(
        kernel(
            "x, o, p",
            """
        i = tl.arange(0, 8)
        v = tl.load(x + i)
        tl.atomic_max(o + i, v)
        tl.atomic_min(p + i, v)
        """,
        ),
        x,
        o,
        p,
    )
    compare(o, torch.maximum(x, start))
    compare(p, torch.minimum(x, start))


# --- random numbers ---


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


# --- asked of a device, or of its programmer ---


@single
def device_print_is_dropped():
    x, o = normal(16), zeros(16)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        a = tl.load(x + i)
        tl.device_print('a', a)
        tl.store(o + i, a)
        """,
        ),
        x,
        o,
    )
    compare(o, x)


@single
def hints_change_nothing():
    x, o = normal(16), zeros(16)
    body = """
        i = tl.max_contiguous(tl.multiple_of(tl.arange(0, 16), 16), 16)
        tl.assume(n > 0)
        a = tl.load(x + i, cache_modifier='.ca', eviction_policy='evict_first')
        tl.debug_barrier()
        tl.compile_hint(a, 'hint')
        tl.store(o + i, a)
        """
    run(kernel("x, o, n", body), x, o, 3)
    compare(o, x)


@single
def multibuffer_hint():
    x, o = normal(16), zeros(16)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        a = tl.load(x + i)
        tl.multibuffer(a, 2)
        tl.store(o + i, a)
        """,
        ),
        x,
        o,
    )
    compare(o, x)


@single
def parallel_loop():
    x, o = normal(64), zeros(64)
    run(
        kernel(
            "x, o",
            """
        for k in tl.parallel(0, 4):
            i = k * 16 + tl.arange(0, 16)
            tl.store(o + i, tl.load(x + i) + 1)
        """,
        ),
        x,
        o,
    )
    compare(o, x + 1)


@single
def device_assert_passes():
    x, o = normal(16), zeros(16)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        a = tl.load(x + i)
        tl.device_assert(a == a, 'not a number')
        tl.store(o + i, a)
        """,
        ),
        x,
        o,
        options={"debug": False},
    )
    compare(o, x)


@single
def static_assert_fails():
    run(kernel("o", "tl.static_assert(1 == 2, 'never equal')"), zeros(1))


@single
def inline_asm():
    x, o = whole(0, 9, 16), zeros(16, dtype=torch.int32)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        a = tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [tl.load(x + i)], tl.int32, is_pure=True, pack=1)
        tl.store(o + i, a)
        """,
        ),
        x,
        o,
    )


@single
def dot_scaled():
    a, b, s, o = (
        whole(0, 100, 16, 32, dtype=torch.uint8),
        whole(0, 100, 32, 16, dtype=torch.uint8),
        whole(120, 130, 16, 1, dtype=torch.uint8),
        zeros(16, 16),
    )
    body = """
        i = tl.arange(0, 16)
        j = tl.arange(0, 32)
        x = tl.load(a + i[:, None] * 32 + j[None, :])
        y = tl.load(b + j[:, None] * 16 + i[None, :])
        z = tl.load(s + i[:, None])
        tl.store(o + i[:, None] * 16 + i[None, :], tl.dot_scaled(x, z, 'e5m2', y, z, 'e5m2'))
        """
    run(kernel("a, b, s, o", body), a, b, s, o)


@single
def sync_between_cube_and_vector():
    x, o = normal(16), zeros(16)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        a = tl.load(x + i)
        tl.sync_block_set('cube', 'vector', 5)
        tl.sync_block_wait('cube', 'vector', 5)
        tl.store(o + i, a)
        """,
        ),
        x,
        o,
    )
    compare(o, x)


@single
def sync_of_all_blocks():
    x, o = normal(16), zeros(16)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        a = tl.load(x + i)
        tl.sync_block_all('all', 1)
        tl.store(o + i, a)
        """,
        ),
        x,
        o,
    )
    compare(o, x)


@single
def tensor_descriptors():
    x, o = normal(16, 32), zeros(16, 32)
    body = """
        i = tl.arange(0, 8)[:, None] * 32 + tl.arange(0, 16)[None, :]
        a = tl.make_tensor_descriptor(x, [16, 32], [32, 1], [8, 16])
        for r in range(2):
            for c in range(2):
                tl.store(o + r * 256 + c * 16 + i, a.load([r * 8, c * 16]) * 2)
        """
    run(kernel("x, o", body), x, o)
    compare(o, x * 2)


@single
def tensor_descriptors_that_store():
    x, o = normal(16, 32), zeros(16, 32)
    body = """
        a = tl.make_tensor_descriptor(x, [16, 32], [32, 1], [8, 16])
        b = tl.make_tensor_descriptor(o, [16, 32], [32, 1], [8, 16])
        for r in range(2):
            for c in range(2):
                b.store([r * 8, c * 16], a.load([r * 8, c * 16]) * 2)
        """
    run(kernel("x, o", body), x, o)
    compare(o, x * 2)


@single
def float64_arithmetic():
    x, o = torch.randn(16, generator=_generator, dtype=torch.float64), zeros(16, dtype=torch.float64)
    run(
        kernel(
            "x, o",
            """
        i = tl.arange(0, 16)
        a = tl.load(x + i)
        tl.store(o + i, a * a + 1.0)
        """,
        ),
        x,
        o,
    )
    compare(o, x * x + 1)


@single
def float8():
    o = zeros(16)
    run(
        kernel(
            "o",
            """
        i = tl.arange(0, 16)
        tl.store(o + i, i.to(tl.float32).to(tl.float8e5).to(tl.float32))
        """,
        ),
        o,
    )
    compare(o, torch.arange(16.0).to(torch.float8_e5m2).float())


# --- expressions drawn at random ---


class Drawn:
    """A program of random statements over float32 and int32 tensors, in Triton's words and in torch's at once."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        self.inputs = {f"x{k}": torch.randn(64, generator=generator) for k in range(3)}
        self.inputs |= {f"n{k}": torch.randint(-50, 50, (64,), generator=generator).int() for k in range(3)}
        self.values: dict[str, Tensor] = dict(self.inputs)
        self.lines: list[str] = []
        for k in range(14):
            self.add(f"t{k}")

    def pick(self, dtype: torch.dtype) -> str:
        return self.random.choice([name for name, value in self.values.items() if value.dtype == dtype])

    def add(self, name: str) -> None:
        a, b, c = (self.pick(torch.float32) for _ in range(3))
        m, n = self.pick(torch.int32), self.pick(torch.int32)
        x, y, z, i, j = (self.values[key] for key in (a, b, c, m, n))
        safe = j | 1
        choices = [
            (f"{a} + {b}", lambda: x + y),
            (f"{a} - {b} * {c}", lambda: x - y * z),
            (f"tl.where({a} > {b}, {b}, {c})", lambda: torch.where(x > y, y, z)),
            (f"tl.minimum(tl.abs({a}), 4.0)", lambda: x.abs().clamp(max=4)),
            (f"tl.maximum({a}, {b}) / (tl.abs({c}) + 1.0)", lambda: torch.maximum(x, y) / (z.abs() + 1)),
            (f"tl.sqrt(tl.abs({a}))", lambda: x.abs().sqrt()),
            (f"{a} - tl.max({b}, 0)", lambda: x - y.max()),
            (f"{a} * 0.5 + {m}.to(tl.float32)", lambda: x * 0.5 + i.float()),
            (f"tl.flip({a}, 0)", lambda: x.flip(0)),
            (f"tl.reshape(tl.trans(tl.reshape({a}, (8, 8))), (64,))", lambda: x.view(8, 8).T.reshape(64)),
            (f"tl.sort({a})", lambda: x.sort()[0]),
            (f"{m} + {n} * 3", lambda: i + j * 3),
            (f"({m} ^ {n}) & 1023", lambda: (i ^ j) & 1023),
            (f"{m} // ({n} | 1)", lambda: torch.div(i, safe, rounding_mode="trunc")),
            (f"{m} % ({n} | 1)", lambda: torch.fmod(i, safe)),
            (f"({m} << 2) - ({n} >> 3)", lambda: (i << 2) - (j >> 3)),
            (f"tl.where({a} < 0.5, {m}, -{n})", lambda: torch.where(x < 0.5, i, -j)),
            (f"tl.clamp({a}, -100.0, 100.0).to(tl.int32)", lambda: x.clamp(-100, 100).int()),
            (f"tl.cumsum({m} & 7, 0)", lambda: (i & 7).cumsum(0).int()),
            (f"{m} - tl.min({n}, 0)", lambda: i - j.min()),
            (f"tl.argmax({a}, 0) + {m}", lambda: x.argmax().int() + i),
            (f"tl.associative_scan({a}, 0, largest)", lambda: x.cummax(0)[0]),
            (f"tl.reduce({m}, 0, last_of) + {n}", lambda: i[-1] + j),
        ]
        text, value = self.random.choice(choices)
        self.lines.append(f"{name} = {text}")
        self.values[name] = value()

    def group(self, name: str) -> Group:
        drawn = {
            key: Output(key, value, (1e-5, 1e-5) if value.is_floating_point() else None)
            for key, value in self.values.items()
            if key.startswith("t")
        }
        return Group(name, self.inputs, drawn, "\n".join(self.lines))


CASES += [Drawn(seed).group(f"random program {seed}") for seed in range(24)]
