"""Grids, blocks and their scratch memory, arguments of every type, constants."""

from __future__ import annotations

import math

import torch
from language_cases import Case, compare
from language_device import Scalar, run
from language_kernels import kernel, normal, registering, zeros

CASES: list[Case] = []
single = registering(CASES)


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
