"""What is asked of a device or of its programmer: prints, assertions, hints, synchronisation, what is refused."""

from __future__ import annotations

from typing import Any

import torch
from language_cases import Case, compare
from language_device import run
from language_kernels import GENERATOR, kernel, normal, registering, whole, zeros

CASES: list[Case] = []
single = registering(CASES)


def copies(*statements: str, options: dict[str, Any] | None = None) -> None:
    """A kernel that copies 16 numbers, with these statements between the load of `a` and its store."""
    x, o = normal(16), zeros(16)
    lines = ["i = tl.arange(0, 16)", "a = tl.load(x + i)", *statements, "tl.store(o + i, a)"]
    run(kernel("x, o", "\n".join(lines)), x, o, options=options)
    compare(o, x)


@single
def device_print_is_dropped():
    copies("tl.device_print('a', a)")


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
    copies("tl.multibuffer(a, 2)")


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
    copies("tl.device_assert(a == a, 'not a number')", options={"debug": False})


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
    copies("tl.sync_block_set('cube', 'vector', 5)", "tl.sync_block_wait('cube', 'vector', 5)")


@single
def sync_of_all_blocks():
    copies("tl.sync_block_all('all', 1)")


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
    x, o = torch.randn(16, generator=GENERATOR, dtype=torch.float64), zeros(16, dtype=torch.float64)
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
