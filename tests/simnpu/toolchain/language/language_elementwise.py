"""Element by element: mathematics, arithmetic, comparisons, integers and bits."""

from __future__ import annotations

import torch
from language_cases import EXACT, Case, Group, Output
from torch import Tensor

_generator = torch.Generator().manual_seed(1)
N = 256


def drawn(low: float, high: float, dtype: torch.dtype = torch.float32, size: int = N) -> Tensor:
    return (torch.rand(size, generator=_generator, dtype=torch.float64) * (high - low) + low).to(dtype)


def whole(low: int, high: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.randint(low, high, (N,), generator=_generator, dtype=torch.int64).to(dtype)


def special(tensor: Tensor) -> Tensor:
    """With the values that go wrong first."""
    tensor = tensor.clone()
    values = torch.tensor(
        [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-40]
    )
    tensor[: len(values)] = values.to(tensor.dtype)
    return tensor


def rounded(function, *tensors: Tensor) -> Tensor:
    """Computed in double, rounded once."""
    return function(*(t.double() for t in tensors)).to(tensors[0].dtype)


def trunc_div(a: Tensor, b: Tensor) -> Tensor:
    return torch.div(a, b, rounding_mode="trunc")


# name: expression of a, function of torch, the domain
UNARY = {
    "exp": ("tl.exp(a)", torch.exp, (-20, 20)),
    "exp2": ("tl.exp2(a)", torch.exp2, (-20, 20)),
    "log": ("tl.log(a)", torch.log, (1e-3, 100)),
    "log2": ("tl.log2(a)", torch.log2, (1e-3, 100)),
    "sin": ("tl.sin(a)", torch.sin, (-10, 10)),
    "cos": ("tl.cos(a)", torch.cos, (-10, 10)),
    "sqrt": ("tl.sqrt(a)", torch.sqrt, (0, 100)),
    "sqrt_rn": ("tl.sqrt_rn(a)", torch.sqrt, (0, 100)),
    "rsqrt": ("tl.rsqrt(a)", torch.rsqrt, (1e-3, 100)),
    "abs": ("tl.abs(a)", torch.abs, (-10, 10)),
    "erf": ("tl.erf(a)", torch.erf, (-4, 4)),
    "floor": ("tl.floor(a)", torch.floor, (-10, 10)),
    "ceil": ("tl.ceil(a)", torch.ceil, (-10, 10)),
    "sigmoid": ("tl.sigmoid(a)", torch.sigmoid, (-20, 20)),
    "softmax": ("tl.softmax(a)", lambda a: torch.softmax(a, 0), (-5, 5)),
    "math.tanh": ("tl.math.tanh(a)", torch.tanh, (-5, 5)),
    "math.rint": ("tl.math.rint(a)", torch.round, (-5, 5)),
    "negative": ("-a", torch.neg, (-5, 5)),
    "clamp": ("tl.clamp(a, -1.0, 2.0)", lambda a: a.clamp(-1, 2), (-5, 5)),
    "libdevice.reciprocal": ("libdevice.reciprocal(a)", torch.reciprocal, (0.1, 10)),
    "libdevice.log1p": ("libdevice.log1p(a)", torch.log1p, (-0.9, 10)),
    "libdevice.relu": ("libdevice.relu(a)", torch.relu, (-5, 5)),
    "libdevice.tan": ("libdevice.tan(a)", torch.tan, (-1.4, 1.4)),
    "libdevice.atan": ("libdevice.atan(a)", torch.atan, (-5, 5)),
    "libdevice.tanh": ("libdevice.tanh(a)", torch.tanh, (-5, 5)),
    "libdevice.round": ("libdevice.round(a)", lambda a: torch.sign(a) * torch.floor(a.abs() + 0.5), (-5, 5)),
    "libdevice.nearbyint": ("libdevice.nearbyint(a)", torch.round, (-5, 5)),
    "libdevice.trunc": ("libdevice.trunc(a)", torch.trunc, (-5, 5)),
    "libdevice.exp": ("libdevice.exp(a)", torch.exp, (-20, 20)),
    "libdevice.floor": ("libdevice.floor(a)", torch.floor, (-20, 20)),
    "libdevice.ceil": ("libdevice.ceil(a)", torch.ceil, (-20, 20)),
    "libdevice.abs": ("libdevice.abs(a)", torch.abs, (-20, 20)),
    "libdevice.rsqrt": ("libdevice.rsqrt(a)", torch.rsqrt, (1e-3, 100)),
    "libdevice.erf": ("libdevice.erf(a)", torch.erf, (-4, 4)),
    "libdevice.ilogb": ("libdevice.ilogb(a)", lambda a: torch.floor(torch.log2(a)), (1e-3, 100)),
}
# Polynomials and formulas of triton-ascend's own, whose error is theirs.
FORMULAS = {
    "libdevice.acos": ("libdevice.acos(a)", torch.acos, (-0.99, 0.99), 1e-2),
    "libdevice.asin": ("libdevice.asin(a)", torch.asin, (-0.99, 0.99), 1e-2),
    "libdevice.sinh": ("libdevice.sinh(a)", torch.sinh, (-5, 5), 1e-5),
    "libdevice.cosh": ("libdevice.cosh(a)", torch.cosh, (-5, 5), 1e-5),
    "libdevice.acosh": ("libdevice.acosh(a)", torch.acosh, (1.1, 10), 1e-4),
    "libdevice.asinh": ("libdevice.asinh(a)", torch.asinh, (-3, 3), 1e-4),
    "libdevice.atanh": ("libdevice.atanh(a)", torch.atanh, (-0.9, 0.9), 1e-4),
    "libdevice.expm1": ("libdevice.expm1(a)", torch.expm1, (-3, 3), 1e-5),
    "libdevice.log10": ("libdevice.log10(a)", torch.log10, (1e-3, 100), 1e-5),
    "libdevice.erfinv": ("libdevice.erfinv(a)", torch.erfinv, (-0.95, 0.95), 1e-4),
    "libdevice.gamma": ("libdevice.gamma(a)", lambda a: torch.exp(torch.lgamma(a)), (0.5, 8), 1e-4),
    "libdevice.lgamma": ("libdevice.lgamma(a)", torch.lgamma, (0.5, 8), 1e-4),
    "libdevice.cyl_bessel_i0": ("libdevice.cyl_bessel_i0(a)", torch.special.i0, (-5, 5), 1e-5),
    "libdevice.erfc": ("libdevice.erfc(a)", torch.erfc, (-3, 3), 1e-5),
    "libdevice.erfcx": ("libdevice.erfcx(a)", torch.special.erfcx, (-2, 3), 1e-5),
    "libdevice.fast_tanhf": ("libdevice.fast_tanhf(a)", torch.tanh, (-3, 3), 1e-5),
    "libdevice.fast_expf": ("libdevice.fast_expf(a)", torch.exp, (-3, 3), 1e-5),
}
PREDICATES = {
    "libdevice.isnan": ("libdevice.isnan(a)", torch.isnan),
    "libdevice.isinf": ("libdevice.isinf(a)", torch.isinf),
    "libdevice.signbit": ("libdevice.signbit(a) != 0", torch.signbit),
    "math.isfinited": ("tl.math.isfinited(a)", torch.isfinite),
    "math.finitef": ("tl.math.finitef(a)", torch.isfinite),
}


def unary() -> list[Case]:
    """A kernel per domain: all functions on the same numbers."""
    cases: list[Case] = []
    domains: dict[tuple[float, float], list[str]] = {}
    for name, (_, _, domain) in UNARY.items():
        domains.setdefault(domain, []).append(name)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for domain, names in domains.items():
            a = drawn(*domain, dtype)
            # One rounding of the value: exp(20) is out of float16's range, as it must be for both.
            outputs = {name: Output(UNARY[name][0], rounded(UNARY[name][1], a)) for name in names}
            short = str(dtype).removeprefix("torch.")
            cases.append(Group(f"unary {short}", {"a": a}, outputs))
    for name, (expression, function, domain, error) in FORMULAS.items():
        a = drawn(*domain)
        cases.append(Group("formula", {"a": a}, {name: Output(expression, rounded(function, a), (error, error))}))
    a = special(drawn(-5, 5))
    names = [
        "exp",
        "sqrt",
        "abs",
        "floor",
        "ceil",
        "negative",
        "math.tanh",
        "libdevice.relu",
        "libdevice.tanh",
        "libdevice.trunc",
        "libdevice.round",
    ]
    # A denormal may be flushed or not: the first operand of the tolerance is wide enough for either.
    cases.append(
        Group("special values", {"a": a}, {name: Output(UNARY[name][0], rounded(UNARY[name][1], a)) for name in names})
    )
    cases.append(Group("special values", {"a": a}, {name: Output(e, f(a)) for name, (e, f) in PREDICATES.items()}))
    return cases


def binary() -> list[Case]:
    cases: list[Case] = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        a, b = drawn(-8, 8, dtype), drawn(-8, 8, dtype)
        p, q = drawn(0.5, 4, dtype), drawn(-3, 3, dtype)
        short = str(dtype).removeprefix("torch.")
        outputs = {
            "add": Output("a + b", a + b, EXACT),
            "sub": Output("a - b", a - b, EXACT),
            "mul": Output("a * b", a * b, EXACT),
            "truediv": Output("a / b", a / b, EXACT),
            "fdiv": Output("tl.fdiv(a, b)", a / b, EXACT),
            "mod": Output("a % b", torch.fmod(a.double(), b.double()).to(dtype)),
            "minimum": Output("tl.minimum(a, b)", torch.minimum(a, b), EXACT),
            "maximum": Output("tl.maximum(a, b)", torch.maximum(a, b), EXACT),
            "where": Output("tl.where(a > b, a, b * 2)", torch.where(a > b, a, b * 2), EXACT),
            "lt": Output("a < b", a < b),
            "le": Output("a <= b", a <= b),
            "gt": Output("a > b", a > b),
            "ge": Output("a >= b", a >= b),
            "eq": Output("a == b", a == b),
            "ne": Output("a != b", a != b),
        }
        cases.append(Group(f"binary {short}", {"a": a, "b": b}, outputs))
        outputs = {"libdevice.pow": Output("libdevice.pow(a, b)", rounded(torch.pow, p, q))}
        cases.append(Group(f"binary {short}", {"a": p, "b": q}, outputs))
        outputs = {
            "libdevice.ldexp": Output(
                "libdevice.ldexp(a, libdevice.round(b.to(tl.float32)).to(a.dtype))",
                rounded(lambda a, b: torch.ldexp(a, torch.sign(b) * torch.floor(b.abs() + 0.5)), p, q),
            ),
            "libdevice.hypot": Output("libdevice.hypot(a, b)", rounded(torch.hypot, p, q)),
            "libdevice.nextafter": Output(
                "libdevice.nextafter(a, b)", torch.nextafter(p, q) if dtype != torch.float16 else p, EXACT
            ),
        }
        if dtype == torch.float16:
            del outputs["libdevice.nextafter"]  # torch has none to compare with
        cases.append(Group(f"binary {short}", {"a": p, "b": q}, outputs))
    a, b, c = drawn(-8, 8), drawn(-8, 8), drawn(-8, 8)
    exact = (a.double() * b.double() + c.double()).float()
    outputs = {
        "div_rn": Output("tl.div_rn(a, b)", a / b, EXACT),
        "fma": Output("tl.fma(a, b, c)", exact, EXACT),
        "libdevice.fma": Output("libdevice.fma(a, b, c)", exact, EXACT),
        "not contracted": Output("a * b + c", a * b + c, EXACT),
        "libdevice.copysign": Output("libdevice.copysign(a, b)", torch.copysign(a, b), EXACT),
        "libdevice.atan2": Output("libdevice.atan2(a, b)", torch.atan2(a, b)),
        "math.atan2": Output("tl.math.atan2(a, b)", torch.atan2(a, b), (1e-4, 1e-4)),
        "libdevice.div_rz": Output("libdevice.div_rz(a, b)", a / b),
        "libdevice.fmod": Output("libdevice.fmod(a, b)", torch.fmod(a, b)),
        "libdevice.mul_rn": Output("libdevice.mul_rn(a, b)", a * b, EXACT),
        "scalar left": Output("2.5 - a", 2.5 - a, EXACT),
        "scalar right": Output("a / 3", a / 3, EXACT),
    }
    cases.append(Group("binary float32", {"a": a, "b": b, "c": c}, outputs))
    # Not-a-number in either, both, none.
    a, b = drawn(-8, 8), drawn(-8, 8)
    a[::3] = float("nan")
    b[::4] = float("nan")
    outputs = {
        "minimum": Output("tl.minimum(a, b)", torch.fmin(a, b), EXACT),
        "maximum": Output("tl.maximum(a, b)", torch.fmax(a, b), EXACT),
        "minimum ALL": Output("tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)", torch.minimum(a, b), EXACT),
        "maximum ALL": Output("tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)", torch.maximum(a, b), EXACT),
        "clamp": Output(
            "tl.clamp(a, -1.0, 2.0)", torch.fmax(torch.fmin(a, torch.tensor(2.0)), torch.tensor(-1.0)), EXACT
        ),
        "clamp ALL": Output("tl.clamp(a, -1.0, 2.0, propagate_nan=tl.PropagateNan.ALL)", a.clamp(-1, 2), EXACT),
        "lt": Output("a < b", a < b),
        "le": Output("a <= b", a <= b),
        "eq": Output("a == b", a == b),
        "ne": Output("a != b", a != b),
        "not ge": Output("(a >= b) == 0", ~(a >= b)),
    }
    cases.append(Group("not a number", {"a": a, "b": b}, outputs))
    return cases


def integers() -> list[Case]:
    cases: list[Case] = []
    for dtype, bits in ((torch.int8, 8), (torch.int16, 16), (torch.int32, 32), (torch.int64, 64)):
        low, high = -(2 ** (bits - 2)), 2 ** (bits - 2)
        a, b = whole(low, high, dtype), whole(low, high, dtype)
        b[b == 0] = 3
        a[:4] = torch.tensor([-7, 7, -7, 7], dtype=dtype)
        b[:4] = torch.tensor([2, -2, -2, 2], dtype=dtype)
        s = whole(0, bits - 1, dtype)
        # Triton widens nothing here: both sides have the type.
        outputs = {
            "add": Output("a + b", a + b),
            "sub": Output("a - b", a - b),
            "mul": Output("a * b", a * b),
            "floordiv": Output("a // b", trunc_div(a, b)),
            "mod": Output("a % b", torch.fmod(a, b)),
            "and": Output("a & b", a & b),
            "or": Output("a | b", a | b),
            "xor": Output("a ^ b", a ^ b),
            "invert": Output("~a", ~a),
            "shl": Output("a << s", a << s),
            "shr": Output("a >> s", a >> s),
            "abs": Output("tl.abs(a)", a.abs()),
            "minimum": Output("tl.minimum(a, b)", torch.minimum(a, b)),
            "maximum": Output("tl.maximum(a, b)", torch.maximum(a, b)),
            "lt": Output("a < b", a < b),
            "where": Output("tl.where(a >= b, a, b)", torch.maximum(a, b)),
            "negative": Output("-a", -a),
            "libdevice.pow": Output("libdevice.pow(s, s)", s if bits < 0 else _powers(s)),
        }
        cases.append(Group(f"int{bits}", {"a": a, "b": b, "s": s}, outputs))
    for dtype, bits in ((torch.uint8, 8), (torch.uint32, 32)):
        a, b = whole(0, 2**bits, torch.int64), whole(1, 2**bits, torch.int64)
        outputs = {
            "floordiv": Output("a // b", (a // b).to(dtype)),
            "mod": Output("a % b", (a % b).to(dtype)),
            "shr": Output("a >> 3", (a >> 3).to(dtype)),
            "lt": Output("a < b", a < b),
            "minimum": Output("tl.minimum(a, b)", torch.minimum(a, b).to(dtype)),
            "to float32": Output("a.to(tl.float32)", a.float()),
            "to int64": Output("a.to(tl.int64)", a),
        }
        cases.append(Group(f"uint{bits}", {"a": a.to(dtype), "b": b.to(dtype)}, outputs))
    a, b = whole(-(2**31), 2**31), whole(-(2**31), 2**31)
    # The adapter multiplies signed numbers, which makes the high half another than Triton's.
    high = (a.long() * b.long() >> 32).int()
    outputs = {
        "umulhi, of signed numbers": Output("tl.umulhi(a, b)", high),
        "cdiv": Output("tl.cdiv(tl.abs(a) >> 8, 7)", (((a.abs() >> 8).long() + 6) // 7).int()),
        "as uint32": Output("(a.to(tl.uint32, bitcast=True) >> 4).to(tl.int64)", (a.long() & 0xFFFFFFFF) >> 4),
        "unsigned compare": Output(
            "a.to(tl.uint32, bitcast=True) < b.to(tl.uint32, bitcast=True)",
            (a.long() & 0xFFFFFFFF) < (b.long() & 0xFFFFFFFF),
        ),
        "bits of float": Output("a.to(tl.float32, bitcast=True).to(tl.int32, bitcast=True)", a),
        "int to float": Output("a.to(tl.float32)", a.float(), EXACT),
        "truediv": Output("a / b", a.float() / b.float()),
    }
    cases.append(Group("int32", {"a": a, "b": b}, outputs))
    # Lanes that a mask leaves out divide by zero, and stop nothing.
    a, b = whole(-100, 100), whole(-3, 4)
    a[0], b[0] = -(2**31), -1
    good = b != 0
    good[0] = False
    safe = torch.where(good, b, 1)
    outputs = {
        "floordiv": Output("tl.where(good, a // b, 0)", torch.where(good, trunc_div(a, safe), 0)),
        "mod": Output("tl.where(good, a % b, 0)", torch.where(good, torch.fmod(a, safe), 0)),
    }
    body = "good = (b != 0) & (tl.arange(0, 256) > 0)"
    cases.append(Group("division by zero", {"a": a, "b": b}, outputs, body))
    t, f = whole(0, 2).bool(), whole(0, 2).bool()
    outputs = {
        "and": Output("t & f", t & f),
        "or": Output("t | f", t | f),
        "xor": Output("t ^ f", t ^ f),
        "invert": Output("~t", ~t),
        "to int32": Output("t.to(tl.int32)", t.int()),
        "to float32": Output("t.to(tl.float32)", t.float()),
        "where": Output("tl.where(t, 1, 2)", torch.where(t, 1, 2).int()),
        "logical_and": Output("t.logical_and(f)", t & f),
        "eq": Output("t == f", t == f),
        "sum": Output("tl.sum(t.to(tl.int32), 0)", t.sum().int()),
    }
    cases.append(Group("bool", {"t": t, "f": f}, outputs))
    return cases


def _powers(s: Tensor) -> Tensor:
    bits = s.element_size() * 8
    values = [int(v) ** int(v) & (2**bits - 1) for v in s]
    return torch.tensor([v - 2**bits if v >= 2 ** (bits - 1) else v for v in values], dtype=s.dtype)


CASES: list[Case] = [*unary(), *binary(), *integers()]
