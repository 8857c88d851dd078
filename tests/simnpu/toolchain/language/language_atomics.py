"""Atomic operations, where lanes and blocks meet and where not."""

from __future__ import annotations

import torch
from language_cases import Case, Single, compare
from language_device import run
from language_kernels import kernel, normal, registering, whole, zeros

CASES: list[Case] = []
single = registering(CASES)


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
