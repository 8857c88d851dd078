"""Control flow: loops, branches, functions, and what is carried through them."""

from __future__ import annotations

import torch
from language_cases import Case, compare
from language_device import run
from language_kernels import kernel, normal, registering, zeros

CASES: list[Case] = []
single = registering(CASES)


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
