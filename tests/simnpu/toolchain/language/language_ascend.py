"""What triton-ascend adds to Triton's language: slices and single elements of a tensor, rows selected in memory, and
what only other Ascend devices have."""

from __future__ import annotations

import torch
from language_cases import Case, compare, garbage
from language_device import run
from language_kernels import kernel, normal, registering, whole, zeros

CASES: list[Case] = []
single = registering(CASES)

TILE = "tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]"


@single
def slices_of_every_type():
    body = f"""
        i = {TILE}
        whole = tl.load(x + i)
        part = extension.extract_slice(whole, [2, 4], [4, 8], [1, 1])
        tl.store(p + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], part)
        tl.store(o + i, extension.insert_slice(whole, part + part, [3, 1], [4, 8], [1, 1]))
        """
    k = kernel("x, p, o", body)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64):
        x = whole(-9, 9, 8, 16).to(dtype)
        p, o = garbage(zeros(4, 8, dtype=dtype)), garbage(x)
        run(k, x, p, o)
        expected = x.clone()
        expected[3:7, 1:9] = 2 * x[2:6, 4:12]
        compare(p, x[2:6, 4:12].contiguous())
        compare(o, expected)


@single
def slices_with_strides():
    body = f"""
        i = {TILE}
        whole = tl.load(x + i)
        part = extension.extract_slice(whole, [0, 1], [4, 8], [2, 1])
        tl.store(o + i, extension.insert_slice(whole * 0.0, part, [1, 0], [4, 8], [1, 2]))
        """
    x = normal(8, 16)
    o = garbage(x)
    run(kernel("x, o", body), x, o)
    expected = torch.zeros_like(x)
    expected[1:5, ::2] = x[::2, 1:9]
    compare(o, expected)


@single
def slices_at_a_place_known_at_run_time():
    body = f"""
        i = {TILE}
        whole = tl.load(x + i)
        row = tl.load(place)
        for step in range(2):
            part = extension.extract_slice(whole, [row + step, 0], [1, 16], [1, 1])
            whole = extension.insert_slice(whole, part * 2.0, [step, 0], [1, 16], [1, 1])
        tl.store(o + i, whole)
        """
    x, place = normal(8, 16), torch.tensor([5], dtype=torch.int32)
    o = garbage(x)
    run(kernel("x, place, o", body), x, place, o)
    expected = x.clone()
    expected[:2] = 2 * x[5:7]
    compare(o, expected)


@single
def elements_of_a_tensor():
    body = f"""
        tile = tl.load(x + {TILE})
        row = tl.load(place)
        tl.store(o, extension.get_element(tile, (3, 4)) + extension.get_element(tile, (row, 15)))
        """
    x, place = normal(8, 16), torch.tensor([6], dtype=torch.int32)
    o = garbage(zeros(1))
    run(kernel("x, place, o", body), x, place, o)
    compare(o, (x[3, 4] + x[6, 15]).reshape(1))


@single
def rows_selected_in_memory():
    body = """
        j = tl.load(index + tl.arange(0, 4))
        rows = extension.index_select_simd(x, 0, j, (10, 16), (-1, 4), (-1, 8))
        tl.store(o + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], rows)
        """
    k = kernel("x, index, o", body)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for index in (torch.tensor([9, 0, 3, 3], dtype=torch.int32), torch.tensor([1, 8, 1, 2])):
            x = normal(10, 16, dtype=dtype)
            o = garbage(zeros(4, 8, dtype=dtype))
            run(k, x, index, o)
            compare(o, x[index.long(), 4:12].contiguous())


@single
def planes_selected_in_memory():
    body = """
        j = tl.load(index + tl.arange(0, 4))
        found = extension.index_select_simd(x, 1, j, (2, 10, 8), (0, -1, 0), (2, -1, 8))
        at = tl.arange(0, 2)[:, None, None] * 32 + tl.arange(0, 4)[None, :, None] * 8 + tl.arange(0, 8)[None, None, :]
        tl.store(o + at, found)
        """
    x, index = normal(2, 10, 8), torch.tensor([9, 0, 3, 3], dtype=torch.int32)
    o = garbage(zeros(2, 4, 8))
    run(kernel("x, index, o", body), x, index, o)
    compare(o, x[:, index.long()].contiguous())


@single
def embeddings_gathered_by_the_device():
    body = """
        j = tl.load(index + tl.arange(0, 4))
        rows = tl.index_select(x, j, 10, 8, (0, 0), (4, 8))
        tl.store(o + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], rows)
        """
    x, index = normal(10, 8), torch.tensor([9, 0, 3, 3], dtype=torch.int32)
    o = garbage(zeros(4, 8))
    run(kernel("x, index, o", body), x, index, o)
    compare(o, x[index.long()])


@single
def values_put_by_the_device():
    body = """
        i = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
        j = tl.load(index + tl.arange(0, 4))
        extension.index_put(o, j, tl.load(x + i), 0, (10, 8), (0, 0))
        """
    x, index = normal(4, 8), torch.tensor([9, 0, 3, 4], dtype=torch.int32)
    o = zeros(10, 8)
    run(kernel("x, index, o", body), x, index, o)
    compare(o, zeros(10, 8).index_put((index.long(),), x))


@single
def elements_gathered_by_the_device():
    body = """
        i = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
        tl.store(o + i, extension.gather_out_to_ub(x, tl.load(index + i), 10, 0, (8, 1), (4, 8), (0, 0)))
        """
    x, index = normal(10, 8), whole(0, 10, 4, 8)
    o = garbage(zeros(4, 8))
    run(kernel("x, index, o", body), x, index, o)
    compare(o, x.gather(0, index.long()))


INDIRECT = """
    j = tl.load(index + tl.arange(0, 4))
    tl.store(o + j, tl.load(x + j) + 1.0)
    """


def indirect(**options: object) -> None:
    x, index = normal(8), torch.tensor([7, 0, 3, 2], dtype=torch.int32)
    o = zeros(8)
    run(kernel("x, index, o", INDIRECT), x, index, o, options=options)
    expected = zeros(8)
    expected[index.long()] = x[index.long()] + 1
    compare(o, expected)


@single
def a_compile_mode_that_another_device_has():
    indirect(compile_mode="unstructured_in_simt")


@single
def indirect_memory_of_another_device():
    indirect(compile_mode="unstructured_in_simt", compile_on_910_95=True)


@single
def kernels_of_threads():
    indirect(compile_mode="simt_only")
