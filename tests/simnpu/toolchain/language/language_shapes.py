"""Whole tensors: casts, reductions, scans, sorting, shapes, matrix products."""

from __future__ import annotations

import itertools

import torch
from language_cases import EXACT, Case, Group, Output
from torch import Tensor

_generator = torch.Generator().manual_seed(2)
TRITON = {
    torch.float32: "tl.float32",
    torch.float16: "tl.float16",
    torch.bfloat16: "tl.bfloat16",
    torch.int8: "tl.int8",
    torch.int16: "tl.int16",
    torch.int32: "tl.int32",
    torch.int64: "tl.int64",
    torch.bool: "tl.int1",
}


def short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=_generator).to(dtype)


def whole(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.randint(low, high, shape, generator=_generator, dtype=torch.int64).to(dtype)


def casts() -> list[Case]:
    cases: list[Case] = []
    for source in TRITON:
        if source == torch.bool:
            a = whole(0, 2, 64).bool()
        elif source.is_floating_point:
            a = (torch.randn(64, generator=_generator) * 30).to(source)
            # Ties, and numbers that do not fit exactly.
            a[:8] = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 1 + 2**-9, 1 + 3 * 2**-9, 1 + 2**-12]).to(source)
        else:
            a = whole(-128, 128, 64, dtype=source) if source == torch.int8 else whole(-30000, 30000, 64, dtype=source)
        outputs = {}
        for target, name in TRITON.items():
            b = a
            if source.is_floating_point and not target.is_floating_point and target != torch.bool:
                b = a.float()  # rounds to zero
            outputs[short(target)] = Output(
                f"a.to({name})" if target != torch.bool else "(a != 0)", b.to(target), EXACT
            )
        cases.append(Group(f"cast {short(source)}", {"a": a}, outputs))
    a = torch.cat(
        [
            torch.tensor(
                [
                    1 + 2**-8,
                    1 + 3 * 2**-8,
                    1 + 2**-11,
                    1 + 3 * 2**-11,
                    65504.0,
                    65519.0,
                    65520.0,
                    1e-8,
                    6e-8,
                    -1e-45,
                    3e38,
                    3.4e38,
                ]
            ),
            normal(52),
        ]
    )
    outputs = {
        "float16": Output("a.to(tl.float16)", a.half(), EXACT),
        "bfloat16": Output("a.to(tl.bfloat16)", a.bfloat16(), EXACT),
        "float16 rtz": Output('a.to(tl.float16, fp_downcast_rounding="rtz")', _toward_zero(a)),
        "float16 and back": Output("a.to(tl.float16).to(tl.float32)", a.half().float(), EXACT),
    }
    cases.append(Group("cast rounding", {"a": a}, outputs))
    return cases


def _toward_zero(a: Tensor) -> Tensor:
    near = a.half()
    too_far = near.float().abs() > a.abs()
    bits = near.view(torch.int16)
    return torch.where(too_far, bits - 1, bits).view(torch.float16)


def reductions() -> list[Case]:
    cases: list[Case] = []
    x = normal(16, 32)
    outputs = {}
    for axis in (0, 1):
        outputs |= {
            f"sum {axis}": Output(f"tl.sum(x, {axis})", x.sum(axis)),
            f"max {axis}": Output(f"tl.max(x, {axis})", x.amax(axis)),
            f"min {axis}": Output(f"tl.min(x, {axis})", x.amin(axis)),
            f"argmax {axis}": Output(f"tl.argmax(x, {axis})", x.argmax(axis).int()),
            f"argmin {axis}": Output(f"tl.argmin(x, {axis})", x.argmin(axis).int()),
            f"max keep {axis}": Output(f"tl.max(x, {axis}, keep_dims=True)", x.amax(axis, keepdim=True)),
            f"product {axis}": Output(f"tl.reduce(x, {axis}, product)", x.double().prod(axis).float(), (1e-4, 1e-6)),
            f"custom {axis}": Output(
                f"tl.reduce(x * 0.1, {axis}, multiply_add)",
                ((1 + 0.1 * x.double()).prod(axis) - 1).float(),
                (1e-4, 1e-4),
            ),
            f"first {axis}": Output(f"tl.reduce(x, {axis}, first_of)", x.select(axis, 0), EXACT),
            f"last {axis}": Output(f"tl.reduce(x, {axis}, last_of)", x.select(axis, -1), EXACT),
            f"largest {axis}": Output(f"tl.reduce(x, {axis}, largest)", x.amax(axis)),
            f"smallest {axis}": Output(f"tl.reduce(x, {axis}, smallest)", x.amin(axis)),
        }
    outputs |= {
        "sum": Output("tl.sum(x)", x.sum(), (1e-4, 1e-5)),
        "max": Output("tl.max(x)", x.max()),
        "min": Output("tl.min(x)", x.min()),
        "max return_indices": Output("tl.max(x, 1, return_indices=True)[1]", x.argmax(1).int()),
        "min return_indices": Output("tl.min(x, 1, return_indices=True)[0]", x.amin(1)),
        "sum keep": Output("tl.sum(x, 1, keep_dims=True)", x.sum(1, keepdim=True)),
    }
    cases.append(Group("reduce float32", {"x": x}, outputs))
    # Ties: the left one.
    x = whole(0, 3, 16, 32).float()
    outputs = {
        "argmax": Output("tl.argmax(x, 1)", _first(x == x.amax(1, keepdim=True))),
        "argmin": Output("tl.argmin(x, 1)", _first(x == x.amin(1, keepdim=True))),
        "argmax of -inf": Output("tl.argmax(x - float('inf'), 1)", torch.zeros(16, dtype=torch.int32)),
        "argmin of inf": Output("tl.argmin(x + float('inf'), 1)", torch.zeros(16, dtype=torch.int32)),
    }
    cases.append(Group("reduce ties", {"x": x}, outputs))
    x = normal(32)
    outputs = {
        "sum": Output("tl.sum(x, 0)", x.sum()),
        "max": Output("tl.max(x, 0)", x.max()),
        "argmax": Output("tl.argmax(x, 0)", x.argmax().int()),
        "argmin": Output("tl.argmin(x, 0)", x.argmin().int()),
        "first": Output("tl.reduce(x, 0, first_of)", x[0]),
        "last": Output("tl.reduce(x, 0, last_of)", x[-1]),
        "custom": Output(
            "tl.reduce(x * 0.1, 0, multiply_add)", ((1 + 0.1 * x.double()).prod() - 1).float(), (1e-4, 1e-4)
        ),
        "affine 0": Output("tl.reduce((m, x), 0, affine)[0]", _affine(x)[0], (1e-4, 1e-6)),
        "affine 1": Output("tl.reduce((m, x), 0, affine)[1]", _affine(x)[1], (1e-4, 1e-4)),
        "welford mean": Output("tl.reduce((x, z, n), 0, welford)[0]", x.mean(), (1e-4, 1e-6)),
        "welford m2": Output("tl.reduce((x, z, n), 0, welford)[1]", ((x - x.mean()) ** 2).sum(), (1e-4, 1e-4)),
    }
    body = "m = x * 0.5 + 1\nz = tl.zeros((32,), tl.float32)\nn = z + 1"
    cases.append(Group("reduce vector", {"x": x}, outputs, body))
    for dtype in (torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64):
        x = whole(-60, 60, 16, 32, dtype=dtype) if not dtype.is_floating_point else normal(16, 32, dtype=dtype)
        loose = (3e-2, 5e-2) if dtype.is_floating_point else None
        outputs = {
            "sum": Output(
                "tl.sum(x, 1)", (x.double().sum(1) if dtype.is_floating_point else x.sum(1)).to(dtype), loose
            ),
            "max": Output("tl.max(x, 1)", x.amax(1).to(dtype)),
            "min": Output("tl.min(x, 0)", x.amin(0).to(dtype)),
            "argmax": Output("tl.argmax(x, 1)", _first(x == x.amax(1, keepdim=True))),
            "argmin": Output("tl.argmin(x, 0)", _first((x == x.amin(0, keepdim=True)).T)),
        }
        if not dtype.is_floating_point:
            outputs["xor_sum"] = Output("tl.xor_sum(x, 1)", _fold(torch.bitwise_xor, x))
            outputs["and"] = Output("tl.reduce(x, 1, both)", _fold(torch.bitwise_and, x))
            outputs["or"] = Output("tl.reduce(x, 1, either)", _fold(torch.bitwise_or, x))
        cases.append(Group(f"reduce {short(dtype)}", {"x": x}, outputs))
    x = normal(4, 8, 16)
    outputs = {
        f"{name} {axis}": Output(f"tl.{name}(x, {axis})", expected(axis))
        for axis in (0, 1, 2)
        for name, expected in (("sum", x.sum), ("max", x.amax), ("argmax", lambda axis: x.argmax(axis).int()))
    }
    outputs["two axes"] = Output("tl.sum(tl.sum(x, 2), 0)", x.sum((0, 2)), (1e-5, 1e-5))
    cases.append(Group("reduce 3 dimensions", {"x": x}, outputs))
    x = normal(16, 32)
    x[3, 5] = float("nan")
    outputs = {
        "sum": Output("tl.sum(x, 1)", x.sum(1)),
        "max": Output("tl.max(x, 1)", torch.where(x.isnan(), -torch.inf, x).amax(1)),
        "max propagates": Output("tl.max(x, 1, propagate_nan=True)", x.amax(1)),
    }
    cases.append(Group("reduce not a number", {"x": x}, outputs))
    b = whole(0, 2, 64).bool()
    outputs = {
        "or": Output("tl.reduce(b.to(tl.int32), 0, either) != 0", b.any()),
        "and": Output("tl.reduce(b, 0, both)", b.all()),
        "max": Output("tl.max(b.to(tl.int8), 0)", b.any().to(torch.int8)),
    }
    cases.append(Group("reduce bool", {"b": b}, outputs))
    return cases


def _first(where: Tensor) -> Tensor:
    return where.int().argmax(1).int()


def _fold(function, x: Tensor) -> Tensor:
    result = x[:, 0]
    for column in range(1, x.shape[1]):
        result = function(result, x[:, column])
    return result


def _affine(x: Tensor) -> tuple[Tensor, Tensor]:
    m = x.double() * 0.5 + 1
    product, sum_ = m[0], x[0].double()
    for k in range(1, len(x)):
        product, sum_ = product * m[k], sum_ * m[k] + x[k].double()
    return product.float(), sum_.float()


def scans() -> list[Case]:
    cases: list[Case] = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64):
        x = whole(-3, 4, 8, 16, dtype=dtype)
        outputs = {}
        for axis, reverse in itertools.product((0, 1), (False, True)):
            tail = " reverse" if reverse else ""
            turn = (lambda t, axis=axis: t.flip(axis)) if reverse else (lambda t: t)
            wide = dtype if dtype != torch.bfloat16 else torch.float32
            sums = turn(turn(x.double()).cumsum(axis))
            outputs[f"cumsum {axis}{tail}"] = Output(f"tl.cumsum(x, {axis}, reverse={reverse})", sums.to(wide))
            outputs[f"custom {axis}{tail}"] = Output(
                f"tl.associative_scan(x, {axis}, largest, reverse={reverse})",
                turn(turn(x.double()).cummax(axis)[0]).to(dtype),
            )
            if dtype in (torch.float32, torch.int32, torch.int64):
                y = turn(turn(x).cumprod(axis)).to(dtype)
                outputs[f"cumprod {axis}{tail}"] = Output(f"tl.cumprod(x, {axis}, reverse={reverse})", y)
        cases.append(Group(f"scan {short(dtype)}", {"x": x}, outputs))
    x = normal(32)
    m = x.double() * 0.5 + 1
    firsts, seconds = [], []
    for k in range(32):
        firsts.append(m[k] if not k else firsts[-1] * m[k])
        seconds.append(x[k].double() if not k else seconds[-1] * m[k] + x[k].double())
    outputs = {
        "first": Output("tl.associative_scan(x, 0, first_of)", x[0].expand(32).contiguous()),
        "last": Output("tl.associative_scan(x, 0, last_of)", x),
        "affine 0": Output("tl.associative_scan((m, x), 0, affine)[0]", torch.stack(firsts).float(), (1e-4, 1e-5)),
        "affine 1": Output("tl.associative_scan((m, x), 0, affine)[1]", torch.stack(seconds).float(), (1e-4, 1e-4)),
        "cumsum 1": Output("tl.cumsum(x, 0)", x.double().cumsum(0).float(), (1e-4, 1e-5)),
    }
    cases.append(Group("scan vector", {"x": x}, outputs, "m = x * 0.5 + 1"))
    x = normal(2, 8, 4)
    outputs = {f"cumsum {axis}": Output(f"tl.cumsum(x, {axis})", x.cumsum(axis)) for axis in (0, 1, 2)}
    cases.append(Group("scan 3 dimensions", {"x": x}, outputs))
    return cases


def sorting() -> list[Case]:
    cases: list[Case] = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64):
        x = normal(8, 16, dtype=dtype) if dtype.is_floating_point else whole(-100, 100, 8, 16, dtype=dtype)
        outputs = {
            "sort": Output("tl.sort(x)", x.sort(1)[0]),
            "sort 0": Output("tl.sort(x, 0)", x.sort(0)[0]),
            "sort descending": Output("tl.sort(x, descending=True)", x.sort(1, descending=True)[0]),
            "flip": Output("tl.flip(x, 1)", x.flip(1)),
            "flip 0": Output("tl.flip(x, 0)", x.flip(0)),
            "gather 0": Output(
                "tl.gather(x, tl.arange(0, 8)[:, None] * 3 % 8 + tl.zeros((8, 16), tl.int32), 0)",
                x[torch.arange(8) * 3 % 8],
            ),
            "gather 1": Output(
                "tl.gather(x, tl.arange(0, 16)[None, :] * 5 % 16 + tl.zeros((8, 16), tl.int32), 1)",
                x[:, torch.arange(16) * 5 % 16],
            ),
            "topk": Output("tl.topk(x, 4)", x.topk(4, 1)[0]),
        }
        cases.append(Group(f"order {short(dtype)}", {"x": x}, outputs))
    h = whole(0, 16, 256)
    g = h.long()
    outputs = {
        "16": Output("tl.histogram(h, 16)", torch.bincount(h, minlength=16).int()),
        "32": Output("tl.histogram(h, 32)", torch.bincount(h, minlength=32).int()),
        "int64": Output("tl.histogram(g, 16)", torch.bincount(h, minlength=16).int()),
        "outside": Output("tl.histogram(h - 4, 8)", torch.bincount((h - 4)[(h >= 4) & (h < 12)], minlength=8).int()),
    }
    cases.append(Group("histogram", {"h": h, "g": g}, outputs))
    x = normal(16)
    outputs = {
        "get_element": Output("tl.get_element(x, (3,))", x[3]),
        "extract_slice": Output("tl.extract_slice(x, (4,), (8,), (1,))", x[4:12]),
        "insert_slice": Output(
            "tl.insert_slice(x, tl.extract_slice(x, (8,), (4,), (1,)) * 2, (2,), (4,), (1,))",
            torch.cat([x[:2], x[8:12] * 2, x[6:]]),
        ),
        "set_element": Output("libdevice.set_element(x, 3, 7.0)", torch.cat([x[:3], torch.tensor([7.0]), x[4:]])),
    }
    cases.append(Group("parts", {"x": x}, outputs))
    return cases


def shapes() -> list[Case]:
    cases: list[Case] = []
    for dtype in (torch.float32, torch.bfloat16, torch.int8, torch.bool):
        x = normal(8, 16, dtype=dtype) if dtype != torch.bool else whole(0, 2, 8, 16).bool()
        y = x.flip(1)
        outputs = {
            "reshape": Output("tl.reshape(x, (4, 32))", x.reshape(4, 32)),
            "view": Output("x.view(16, 8)", x.reshape(16, 8)),
            "ravel": Output("tl.ravel(x)", x.reshape(-1)),
            "trans": Output("tl.trans(x)", x.T.contiguous()),
            "permute": Output("tl.permute(x, (1, 0))", x.T.contiguous()),
            "join": Output("tl.join(x, y)", torch.stack([x, y], -1)),
            "split 0": Output("tl.split(tl.reshape(x, (8, 8, 2)))[0]", x.reshape(8, 8, 2)[..., 0].contiguous()),
            "split 1": Output("tl.split(tl.reshape(x, (8, 8, 2)))[1]", x.reshape(8, 8, 2)[..., 1].contiguous()),
            "interleave": Output("tl.interleave(x, y)", torch.stack([x, y], -1).reshape(8, 32)),
            "broadcast_to": Output(
                "tl.broadcast_to(tl.expand_dims(x, 0), (4, 8, 16))", x.expand(4, 8, 16).contiguous()
            ),
            "expand_dims": Output("x[:, None, :]", x[:, None, :]),
            "cat": Output(
                "tl.cat(tl.ravel(x), tl.ravel(y), can_reorder=True)", torch.cat([x.reshape(-1), y.reshape(-1)])
            ),
            "where row": Output("tl.where(tl.arange(0, 8)[:, None] < 4, x, y)", torch.cat([x[:4], y[4:]])),
        }
        cases.append(Group(f"shape {short(dtype)}", {"x": x, "y": y}, outputs))
    x = normal(4, 8, 16)
    outputs = {
        f"permute {order}": Output(f"tl.permute(x, {order})", x.permute(order).contiguous())
        for order in itertools.permutations(range(3))
        if order != (0, 1, 2)
    }
    outputs |= {
        "broadcast": Output("tl.broadcast(tl.sum(x, 0)[None, :, :], x)[0] + x", x.sum(0) + x),
        "full": Output("tl.full((4, 8), 2.5, tl.float32)", torch.full((4, 8), 2.5)),
        "zeros": Output("tl.zeros((4, 8), tl.float16)", torch.zeros(4, 8, dtype=torch.float16)),
        "zeros_like": Output("tl.zeros_like(x)", torch.zeros_like(x)),
        "arange": Output("tl.arange(5, 21)", torch.arange(5, 21, dtype=torch.int32)),
        "row and column": Output(
            "tl.arange(0, 8)[:, None] * 100 + tl.arange(0, 4)[None, :]",
            (torch.arange(8)[:, None] * 100 + torch.arange(4)).int(),
        ),
        "one element": Output("tl.full((1,), 3, tl.int32)", torch.tensor([3], dtype=torch.int32)),
        "swizzle2d": Output(
            "tl.swizzle2d(r[:, None] + z, r[None, :] + z, 4, 4, 2)[0]",
            _swizzle(),
        ),
    }
    outputs["broadcast"] = Output("tl.broadcast_to(tl.sum(x, 0)[None, :, :], (4, 8, 16)) + x", x.sum(0) + x)
    cases.append(Group("shape 3 dimensions", {"x": x}, outputs, "r = tl.arange(0, 4)\nz = tl.zeros((4, 4), tl.int32)"))
    return cases


def _swizzle() -> Tensor:
    result = torch.empty(4, 4, dtype=torch.int32)
    for i, j in itertools.product(range(4), range(4)):
        flat = i * 4 + j
        group, within = flat // 8, flat % 8
        result[i, j] = group * 2 + within % 2
    return result


def products() -> list[Case]:
    cases: list[Case] = []
    for dtype, tolerance in (
        (torch.float32, (1e-5, 1e-4)),
        (torch.float16, (1e-5, 1e-4)),
        (torch.bfloat16, (1e-5, 1e-4)),
    ):
        a, b, c = (
            normal(16, 32, dtype=dtype),
            normal(32, 48 if dtype == torch.float64 else 64, dtype=dtype),
            normal(16, 64),
        )
        exact = a.double() @ b.double()
        outputs = {
            "dot": Output("tl.dot(a, b)", exact.float(), tolerance),
            "accumulator": Output("tl.dot(a, b, c)", (exact + c.double()).float(), tolerance),
            "added": Output("tl.dot(a, b) + c", (exact + c.double()).float(), tolerance),
            "transposed": Output("tl.dot(tl.trans(b), tl.trans(a))", exact.T.float().contiguous(), tolerance),
            "chain": Output(
                "tl.dot(tl.dot(a, b).to(a.dtype), tl.trans(b))",
                (exact.float().to(dtype).double() @ b.double().T).float(),
                (1e-2, 1e-1),
            ),
        }
        if dtype == torch.float32:
            outputs["ieee"] = Output("tl.dot(a, b, input_precision='ieee')", exact.float(), tolerance)
            outputs["hf32"] = Output("tl.dot(a, b, input_precision='hf32')", exact.float(), (1e-2, 1e-2))
            outputs["tf32"] = Output("tl.dot(a, b, input_precision='tf32')", exact.float(), (1e-2, 1e-2))
        if dtype == torch.float16:
            outputs["out float16"] = Output("tl.dot(a, b, out_dtype=tl.float16)", exact.half(), (1e-2, 1e-2))
        cases.append(Group(f"dot {short(dtype)}", {"a": a, "b": b, "c": c}, outputs))
    a, b, c = (
        whole(-128, 128, 16, 32, dtype=torch.int8),
        whole(-128, 128, 32, 16, dtype=torch.int8),
        whole(-1000, 1000, 16, 16),
    )
    outputs = {
        "dot": Output("tl.dot(a, b, out_dtype=tl.int32)", (a.long() @ b.long()).int()),
        "accumulator": Output("tl.dot(a, b, c, out_dtype=tl.int32)", (a.long() @ b.long()).int() + c),
    }
    cases.append(Group("dot int8", {"a": a, "b": b, "c": c}, outputs))
    a, b = normal(4, 16, 32), normal(4, 32, 16)
    cases.append(Group("dot batched", {"a": a, "b": b}, {"dot": Output("tl.dot(a, b)", a @ b, (1e-5, 1e-4))}))
    return cases


CASES: list[Case] = [*casts(), *reductions(), *scans(), *sorting(), *shapes(), *products()]
