"""The corpus of operator calls that the simulated NPU must answer as the CPU does.

Run in a child on the simulated NPU by test_ops.py: `corpus.py REPORT [FAMILY...]` writes one JSON object per case.
Each case names the aclnn functions that it must have reached, so that an operator which quietly ran elsewhere (a CPU
fallback, a decomposition) is noticed.
"""

# ruff: noqa: B008 - a lambda made in a loop binds the loop's function as a default argument

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import torch_npu

from simnpu import calls

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
I64, I32, U8, I8, BOOL = torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool
FLOATS = (F32, F16, BF16)
INTS = (I64, I32)
NUMBERS = (*FLOATS, *INTS)


@dataclass(frozen=True)
class Input:
    """How to make one tensor: shape, dtype (None: the case's), value range, memory layout."""

    shape: tuple[int, ...]
    dtype: torch.dtype | None = None
    low: float = -3.0
    high: float = 3.0
    layout: str = (
        "plain"  # plain | transposed (last two dimensions) | strided (every other element) | expanded (first dimension)
    )
    grad: bool = True

    def make(self, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        """A CPU tensor; the same one for the same generator state."""
        dtype = self.dtype or dtype
        shape = list(self.shape)
        if self.layout == "transposed":
            shape[-1], shape[-2] = shape[-2], shape[-1]
        elif self.layout == "strided":
            shape[-1] *= 2
        elif self.layout == "expanded":
            shape[0] = 1
        if dtype == BOOL:
            value = torch.rand(shape, generator=generator) < 0.5
        elif dtype.is_floating_point:
            value = (torch.rand(shape, generator=generator) * (self.high - self.low) + self.low).to(dtype)
        else:
            value = torch.randint(int(self.low), int(self.high) + 1, shape, generator=generator).to(dtype)
        return self.arrange(value)

    def arrange(self, value: torch.Tensor) -> torch.Tensor:
        """The wanted memory layout on the device of `value`."""
        if self.layout == "transposed":
            return value.transpose(-1, -2)
        if self.layout == "strided":
            return value[..., ::2]
        if self.layout == "expanded":
            return value.expand(self.shape)
        return value

    def on_device(self, value: torch.Tensor) -> torch.Tensor:
        """The same tensor with the same strides on the device."""
        moved = value.contiguous().npu()
        if self.layout == "transposed":
            return moved.transpose(-1, -2).contiguous().transpose(-1, -2)
        if self.layout == "strided":
            wide = torch.zeros(*value.shape[:-1], value.shape[-1] * 2, dtype=value.dtype).npu()
            wide[..., ::2] = moved
            return wide[..., ::2]
        if self.layout == "expanded":
            return moved[:1].expand(self.shape)
        return moved


def t(*shape: int, **how: Any) -> Input:
    """A tensor of the case's dtype with values in [-3, 3]."""
    return Input(shape, **how)


def index(*shape: int, high: int, dtype: torch.dtype = I64, **how: Any) -> Input:
    """Indices from 0 up to `high`, exclusive."""
    return Input(shape, dtype, 0, high - 1, grad=False, **how)


def mask(*shape: int) -> Input:
    """A boolean mask."""
    return Input(shape, BOOL, grad=False)


@dataclass(frozen=True)
class Case:
    """One call, for several dtypes."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    reaches: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...]
    grad: bool
    # Where the device computes in float and the CPU in the low precision: absolute and relative, for types below float.
    low_precision: float | None


CASES: list[Case] = []


def case(
    name: str,
    function: Callable[..., Any],
    *inputs: Input,
    reaches: str = "",
    dtypes: Any = (F32,),
    grad: bool = False,
    low_precision: float | None = None,
) -> None:
    """Adds a case. `reaches`: aclnn functions without their prefix; with `grad`, gradients are compared as well."""
    CASES.append(Case(name, function, inputs, tuple(reaches.split()), tuple(dtypes), grad, low_precision))


def unary(
    names: str, *, low: float = -3, high: float = 3, dtypes: Any = FLOATS, grad: bool = True, aclnn: str = ""
) -> None:
    """Functions of one tensor, in several shapes and layouts."""
    for name in names.split():
        function = getattr(torch, name)
        reaches = aclnn or "".join(part.capitalize() for part in name.split("_"))
        case(name, function, t(3, 4, low=low, high=high), reaches=reaches, dtypes=dtypes, grad=grad)
        first = dtypes[:1]
        case(f"{name} 0-dim", function, t(low=low, high=high), reaches=reaches, dtypes=first)
        case(
            f"{name} 3-D transposed",
            function,
            t(2, 3, 5, low=low, high=high, layout="transposed"),
            reaches=reaches,
            dtypes=first,
            grad=grad,
        )
        case(f"{name} empty", function, t(0, 4), dtypes=first)


def add_unary() -> None:
    unary("abs neg sign", dtypes=NUMBERS, grad=False)
    unary(
        "abs neg sin cos tan sinh cosh atan asinh exp exp2 expm1 erf erfc sigmoid tanh relu square",
        grad=True,
        aclnn=" ",
    )
    unary("erf erfc sin cos exp sigmoid tanh relu expm1 exp2")
    unary("asin acos atanh erfinv", low=-0.9, high=0.9)
    unary("acosh", low=1.1, high=4)
    unary("log log2 log10 log1p sqrt rsqrt reciprocal", low=0.1, high=9)
    unary("ceil floor round trunc frac", grad=False)
    unary("signbit", dtypes=NUMBERS, grad=False)
    unary("logical_not", dtypes=(*NUMBERS, BOOL), grad=False)
    unary("bitwise_not", dtypes=(I64, I32, BOOL), grad=False)
    for name in ["isfinite", "isnan", "isinf", "isposinf", "isneginf"]:
        case(name, lambda x, f=getattr(torch, name): f(x / torch.tensor([0.0, 1.0, -0.0], device=x.device)), t(4, 3))
    for name in ["sqrt", "exp", "sin", "abs", "neg"]:
        case(f"{name} of integers", getattr(torch, name), t(5, dtype=I64, low=0, high=9))
    case("nan_to_num", lambda x: torch.nan_to_num(x / 0, 1.5, 2.5, -3.5), t(9), reaches="NanToNum")
    case("round decimals", lambda x: torch.round(x, decimals=2), t(9), reaches="RoundDecimals")
    case("logit", lambda x: torch.logit(x, 0.1), t(9, low=0.0, high=1.0), reaches="Logit", grad=True)
    for name in [
        "abs_",
        "neg_",
        "exp_",
        "sigmoid_",
        "tanh_",
        "relu_",
        "floor_",
        "ceil_",
        "sqrt_",
        "reciprocal_",
        "sin_",
        "cos_",
        "zero_",
    ]:
        case(f"in place {name}", lambda x, n=name: getattr(x.clone(), n)(), t(3, 4, low=0.5, high=4), dtypes=FLOATS)
        case(f"in place {name} strided", lambda x, n=name: getattr(x.clone()[:, ::2], n)(), t(3, 4, low=0.5, high=4))


def add_activation() -> None:
    pointwise: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "Gelu": F.gelu,
        "Silu": F.silu,
        "Mish": F.mish,
        "Softplus": F.softplus,
        "LeakyRelu": lambda x: F.leaky_relu(x, 0.2),
        "Elu": F.elu,
        "Celu": lambda x: F.celu(x, 1.3),
        "Hardtanh": F.hardtanh,
        "Hardsigmoid": F.hardsigmoid,
        "Hardswish": F.hardswish,
        "Hardshrink": F.hardshrink,
        "Softshrink": F.softshrink,
        "LogSigmoidForward": F.logsigmoid,
        "Threshold": lambda x: F.threshold(x, 0.5, -1.0),
        "Glu": lambda x: F.glu(x, -1),
    }
    for name, function in pointwise.items():
        case(name, function, t(3, 4), reaches=name, dtypes=FLOATS, grad=True)
        case(f"{name} 3-D transposed", function, t(2, 4, 6, layout="transposed"), reaches=name, grad=True)
    case("relu6", F.relu6, t(3, 4, low=-9, high=9), grad=True)
    case("prelu", F.prelu, t(2, 3, 4), t(3), grad=True)
    case("selu", F.selu, t(3, 4), grad=True)
    for name in ("relu", "leaky_relu", "elu", "hardtanh", "silu"):
        case(f"in place {name}", lambda x, f=getattr(F, name): f(x.clone(), inplace=True), t(3, 4))


def add_binary() -> None:
    def both(
        name: str,
        function: Callable[..., Any],
        aclnn: str,
        *,
        dtypes: Any = NUMBERS,
        grad: bool = False,
        positive: bool = False,
    ) -> None:
        how = {"low": 1, "high": 5} if positive else {}
        case(name, function, t(3, 4, **how), t(3, 4, **how), reaches=aclnn, dtypes=dtypes)
        if grad:
            case(f"{name} gradient", function, t(3, 4, **how), t(3, 4, **how), dtypes=FLOATS, grad=True)
        case(f"{name} broadcast", function, t(2, 1, 4, **how), t(3, 1, **how), reaches=aclnn, grad=grad)
        case(
            f"{name} layouts",
            function,
            t(3, 4, layout="transposed", **how),
            t(3, 4, layout="expanded", **how),
            reaches=aclnn,
        )
        case(f"{name} strided", function, t(3, 4, layout="strided", **how), t(3, 4, **how), reaches=aclnn)
        case(f"{name} 0-dim", function, t(**how), t(3, **how), reaches=aclnn)
        case(f"{name} empty", function, t(0, 3, **how), t(3, **how))
        case(f"{name} mixed types", function, t(3, 4, **how), t(3, 4, dtype=I32, **how), reaches=aclnn)

    both("add", lambda x, y: x + y, "Add", grad=True)
    both("sub", lambda x, y: x - y, "Sub", grad=True)
    both("mul", lambda x, y: x * y, "Mul", grad=True)
    both("div", lambda x, y: x / y, "Div", grad=True, positive=True)
    both("floor_divide", lambda x, y: x // y, "FloorDivide", positive=True)
    both("div trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), "DivMod", positive=True)
    both("div floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), "", positive=True)
    both("remainder", lambda x, y: x % y, "RemainderTensorTensor", positive=True)
    both("fmod", torch.fmod, "FmodTensor", positive=True)
    both("pow", torch.pow, "PowTensorTensor", grad=True, positive=True)
    both("maximum", torch.maximum, "Maximum", grad=True)
    both("minimum", torch.minimum, "Minimum", grad=True)
    both("atan2", torch.atan2, "Atan2", dtypes=FLOATS, grad=True)
    for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
        both(name, getattr(torch, name), f"{name.capitalize()}Tensor", dtypes=(*NUMBERS, BOOL))
        case(
            f"{name} scalar",
            lambda x, f=getattr(torch, name): f(x, 1),
            t(3, 4),
            reaches=f"{name.capitalize()}Scalar",
            dtypes=NUMBERS,
        )
        case(f"in place {name}", lambda x, y, n=name: getattr(x.clone(), f"{n}_")(y), t(3, 4), t(3, 4))
    for name in ["and", "or", "xor"]:
        both(
            f"logical_{name}", getattr(torch, f"logical_{name}"), f"Logical{name.capitalize()}", dtypes=(*NUMBERS, BOOL)
        )
        function = getattr(torch, f"bitwise_{name}")
        case(
            f"bitwise_{name}",
            function,
            t(3, 4),
            t(3, 4),
            reaches=f"Bitwise{name.capitalize()}Tensor",
            dtypes=(I64, I32, BOOL),
        )
        case(
            f"bitwise_{name} scalar",
            lambda x, f=function: f(x, 5),
            t(3, 4),
            reaches=f"Bitwise{name.capitalize()}Scalar",
            dtypes=INTS,
        )
    case("shift left", lambda x: x << 2, t(9), dtypes=INTS)
    case("shift right", lambda x: x >> 1, t(9), dtypes=INTS)

    scalars: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
        "x + 2": (lambda x: x + 2, "Adds"),
        "x + 2.5": (lambda x: x + 2.5, "Adds"),
        "add alpha": (lambda x: torch.add(x, 3, alpha=2), "Adds"),
        "x - 3": (lambda x: x - 3, "Subs"),
        "3 - x": (lambda x: 3 - x, ""),
        "x * 2.5": (lambda x: x * 2.5, "Muls"),
        "x / 4": (lambda x: x / 4, "Divs"),
        "4 / x": (lambda x: 4 / (x + 9), ""),
        "x // 2": (lambda x: x // 2, "FloorDivides"),
        "x % 2": (lambda x: x % 2, "RemainderTensorScalar"),
        "7 % x": (lambda x: torch.remainder(7, x.abs() + 1), "RemainderScalarTensor"),
        "fmod 2": (lambda x: torch.fmod(x, 2), "FmodScalar"),
        "x ** 2": (lambda x: x**2, "PowTensorScalar"),
        "2 ** x": (lambda x: 2 ** (x.abs()), "PowScalarTensor"),
        "rsub alpha": (lambda x: torch.rsub(x, 5, alpha=2), ""),
        "x + wrapped tensor": (lambda x: x + torch.tensor(2), ""),
    }
    for name, (function, aclnn) in scalars.items():
        case(name, function, t(3, 4), reaches=aclnn, dtypes=NUMBERS)
        if name not in ("x // 2", "7 % x"):  # these have no derivative
            case(f"{name} gradient", function, t(2, 3, 4), grad=True)
        case(f"{name} 0-dim", function, t())
    inplace: dict[str, tuple[Callable[..., Any], str]] = {
        "add_": (lambda x, y: x.clone().add_(y, alpha=2), "InplaceAdd"),
        "sub_": (lambda x, y: x.clone().sub_(y), "InplaceSub"),
        "mul_": (lambda x, y: x.clone().mul_(y), "InplaceMul"),
        "div_": (lambda x, y: x.clone().div_(y), "InplaceDiv"),
        "pow_": (lambda x, y: x.clone().abs().pow_(y), "InplacePowTensorTensor"),
        "remainder_": (lambda x, y: x.clone().remainder_(y), "InplaceRemainderTensorTensor"),
        "fmod_": (lambda x, y: x.clone().fmod_(y), "InplaceFmodTensor"),
        "floor_divide_": (lambda x, y: x.clone().floor_divide_(y), "InplaceFloorDivide"),
        "atan2_": (lambda x, y: x.clone().atan2_(y), "InplaceAtan2"),
        "add_ of itself": (lambda x, y: (z := x.clone()).add_(z) + y, "InplaceAdd"),
        "add_ scalar": (lambda x, y: x.clone().add_(3) + y, "InplaceAdds"),
        "mul_ scalar": (lambda x, y: x.clone().mul_(3) + y, "InplaceMuls"),
        "div_ scalar": (lambda x, y: x.clone().div_(3) + y, "InplaceDivs"),
        "sub_ scalar": (lambda x, y: x.clone().sub_(3) + y, "InplaceSubs"),
        "pow_ scalar": (lambda x, y: x.clone().pow_(2) + y, "InplacePowTensorScalar"),
        "add_ into a slice": (lambda x, y: (z := x.clone(), z[1:].add_(y[1:]))[0], "InplaceAdd"),
        "add_ into columns": (lambda x, y: (z := x.clone(), z[:, ::2].add_(y[:, ::2]))[0], ""),
        "clamp_": (lambda x, y: x.clone().clamp_(-1, 1) + y, ""),
        "lerp_": (lambda x, y: x.clone().lerp_(y, 0.3), "InplaceLerps"),
        "addcmul_": (lambda x, y: x.clone().addcmul_(y, x, value=0.5), "InplaceAddcmul"),
        "addcdiv_": (lambda x, y: x.clone().addcdiv_(y, x, value=0.5), "InplaceAddcdiv"),
        "logical_and_": (lambda x, y: x.clone().logical_and_(y), "InplaceLogicalAnd"),
        "fill_": (lambda x, y: x.clone().fill_(3.5) + y, "InplaceFillScalar"),
        "fill_ tensor": (lambda x, y: x.clone().fill_(y[0, 0]), ""),
        "copy_": (lambda x, y: x.clone().copy_(y), ""),
        "swap by copy": (lambda x, y: (z := x.clone(), z.copy_(y.flip(0)))[0], ""),
    }
    for name, (function, aclnn) in inplace.items():
        case(name, function, t(3, 4, low=1, high=5), t(3, 4, low=1, high=5), reaches=aclnn, dtypes=(F32, F16))
    case("lerp", lambda x, y: torch.lerp(x, y, 0.3), t(3, 4), t(3, 4), reaches="Lerps", grad=True)
    case("lerp tensor", torch.lerp, t(3, 4), t(3, 4), t(3, 4), reaches="Lerp", grad=True)
    case(
        "addcmul",
        lambda x, y, z: torch.addcmul(x, y, z, value=0.3),
        t(3, 4),
        t(3, 4),
        t(4),
        reaches="Addcmul",
        dtypes=FLOATS,
        grad=True,
    )
    case(
        "addcdiv",
        lambda x, y, z: torch.addcdiv(x, y, z, value=0.3),
        t(3, 4),
        t(3, 4),
        t(4, low=1),
        reaches="Addcdiv",
        grad=True,
    )
    case("clamp", lambda x: x.clamp(-1, 1), t(3, 4), reaches="Clamp", dtypes=NUMBERS)
    case("clamp gradient", lambda x: x.clamp(-1, 1), t(3, 4), grad=True)
    case("clamp min", lambda x: x.clamp(min=0), t(3, 4), dtypes=NUMBERS)
    case("clamp max", lambda x: x.clamp(max=0), t(3, 4), dtypes=NUMBERS)
    case("clamp tensor", torch.clamp, t(3, 4), t(4, low=-2, high=-1, grad=False), t(3, 1, low=1, high=2, grad=False))
    case("where", torch.where, mask(3, 4), t(3, 4), t(4), reaches="SWhere", dtypes=NUMBERS)
    case("where gradient", torch.where, mask(3, 4), t(3, 4), t(4), grad=True)
    case("where scalar", lambda c, x: torch.where(c, x, 0.0), mask(3, 4), t(3, 4), reaches="SWhere", grad=True)
    case(
        "masked_fill",
        lambda x, m: x.masked_fill(m, 9),
        t(3, 4),
        mask(3, 4),
        reaches="InplaceMaskedFillScalar",
        dtypes=NUMBERS,
    )
    case("masked_fill gradient", lambda x, m: x.masked_fill(m, 9), t(3, 4), mask(4), grad=True)
    case("masked_fill -inf", lambda x, m: x.masked_fill(m, float("-inf")), t(3, 4), mask(4), dtypes=FLOATS)
    case("masked_fill tensor", lambda x, m: x.masked_fill(m, torch.tensor(2.0, device=x.device)), t(3, 4), mask(4))
    case(
        "masked_scatter",
        lambda x, m, y: x.masked_scatter(m, y),
        t(3, 4),
        mask(3, 4),
        t(12),
        reaches="InplaceMaskedScatter",
    )
    case("isclose", lambda x: torch.isclose(x, x + 1e-6), t(3, 4), reaches="IsClose")
    case("isclose tolerances", lambda x: torch.isclose(x, x + 0.1, rtol=0.05, atol=0.01), t(30))
    case("allclose", lambda x: torch.allclose(x, x), t(3, 4))
    case("equal", lambda x: (torch.equal(x, x), torch.equal(x, x + 1)), t(3, 4), reaches="Equal", dtypes=NUMBERS)
    case("logaddexp", torch.logaddexp, t(3, 4), t(3, 4), reaches="LogAddExp", grad=True)
    case("xlogy", torch.xlogy, t(3, 4), t(3, 4, low=1, high=3), grad=True)
    case("gcd", torch.gcd, t(9, low=1, high=30), t(9, low=1, high=30), dtypes=(I64, I32))
    case("isin", lambda x: torch.isin(x, torch.tensor([1, 2], device=x.device)), t(9), dtypes=(I64,))


def add_reduce() -> None:
    for name in ["sum", "mean", "prod"]:
        function = getattr(torch, name)
        dtypes = FLOATS if name == "mean" else NUMBERS
        case(name, function, t(3, 4, low=0.5, high=2), dtypes=dtypes)
        case(f"{name} gradient", function, t(3, 4, low=0.5, high=2), dtypes=FLOATS, grad=True)
        case(f"{name} dim", lambda x, f=function: f(x, 1), t(2, 3, 4), dtypes=dtypes)
        case(
            f"{name} dim keepdim",
            lambda x, f=function: f(x, -1, keepdim=True),
            t(2, 3, 4, layout="transposed"),
            grad=True,
        )
        case(f"{name} 0-dim", function, t())
        case(f"{name} dtype", lambda x, f=function: f(x, dtype=F32), t(3, 4), dtypes=(F16, I64))
    case("sum empty", torch.sum, t(0, 3))
    case("sum dims", lambda x: x.sum((0, 2)), t(2, 3, 4), reaches="ReduceSum", grad=True)
    case("sum bool", torch.sum, mask(3, 4))
    case("mean dims", lambda x: x.mean((0, 2), keepdim=True), t(2, 3, 4), reaches="Mean", grad=True)
    case("nansum", torch.nansum, t(9))
    for name in ["all", "any"]:
        case(name, getattr(torch, name), mask(3, 4))
        case(f"{name} number", getattr(torch, name), t(3, 4), dtypes=NUMBERS)
        case(f"{name} dim", lambda x, f=getattr(torch, name): f(x, 1), mask(2, 3, 4), reaches=name.capitalize())
        case(f"{name} keepdim", lambda x, f=getattr(torch, name): f(x, 0, keepdim=True), mask(2, 3, 4))
    for name in ["max", "min"]:
        function = getattr(torch, name)
        case(name, function, t(3, 4), reaches=name.capitalize(), dtypes=NUMBERS)
        case(f"{name} gradient", function, t(3, 4), grad=True)
        case(
            f"{name} dim",
            lambda x, f=function: tuple(f(x, 1)),
            t(2, 3, 4),
            reaches=f"{name.capitalize()}Dim",
            dtypes=FLOATS,
        )
        case(f"{name} dim gradient", lambda x, f=function: f(x, 1, keepdim=True)[0], t(2, 3, 4), grad=True)
        case(
            f"a{name}",
            lambda x, f=getattr(torch, f"a{name}"): f(x, (0, 2)),
            t(2, 3, 4),
            reaches=f"A{name}",
            dtypes=FLOATS,
        )
        case(f"a{name} gradient", lambda x, f=getattr(torch, f"a{name}"): f(x, 1), t(2, 3, 4), grad=True)
        case(
            f"arg{name}",
            getattr(torch, f"arg{name}"),
            t(3, 4),
            reaches=f"Arg{name.capitalize()}",
            dtypes=(F32, F16, I64),
        )
        case(f"arg{name} dim", lambda x, f=getattr(torch, f"arg{name}"): f(x, 1, keepdim=True), t(2, 3, 4))
    case("aminmax", lambda x: tuple(torch.aminmax(x, dim=1)), t(2, 3))
    for name in ["var", "std"]:
        function = getattr(torch, name)
        case(name, function, t(3, 4), dtypes=FLOATS)
        case(f"{name} gradient", lambda x, f=function: f(x, 1), t(3, 4), grad=True)
        case(f"{name} biased", lambda x, f=function: f(x, (0, 1), unbiased=False, keepdim=True), t(3, 4, 5))
        case(f"{name} correction", lambda x, f=function: f(x, 1, correction=2), t(3, 4))
        case(f"{name}_mean", lambda x, f=getattr(torch, f"{name}_mean"): f(x, 1), t(3, 4))
    case("norm", torch.norm, t(3, 4), dtypes=FLOATS)
    case("norm dim", lambda x: torch.norm(x, dim=1), t(3, 4), grad=True)
    case("norm 1", lambda x: torch.norm(x, p=1, dim=1, keepdim=True), t(3, 4))
    case("norm inf", lambda x: torch.norm(x, p=float("inf")), t(3, 4))
    case("vector_norm", lambda x: torch.linalg.vector_norm(x, 3, dim=(0, 1)), t(3, 4), grad=True)
    # The gradient multiplies the result's rounding: the CPU rounds at each step, a device once.
    case(
        "logsumexp",
        lambda x: torch.logsumexp(x, 1),
        t(3, 4),
        reaches="LogSumExp",
        dtypes=FLOATS,
        grad=True,
        low_precision=2e-2,
    )
    case("cumsum", lambda x: torch.cumsum(x, 1), t(3, 4), reaches="Cumsum", dtypes=NUMBERS)
    case("cumsum gradient", lambda x: torch.cumsum(x, 0), t(3, 4), grad=True)
    case("cumprod", lambda x: torch.cumprod(x, 1), t(3, 4), reaches="Cumprod")
    case("cummax", lambda x: tuple(torch.cummax(x, 1)), t(3, 4), reaches="Cummax")
    case("topk", lambda x: tuple(torch.topk(x, 2)), t(3, 7), reaches="Topk", dtypes=(F32, F16))
    case("topk smallest", lambda x: tuple(torch.topk(x, 3, dim=0, largest=False)), t(7, 2))
    case("topk gradient", lambda x: torch.topk(x, 2)[0], t(3, 7), grad=True)
    case("sort", lambda x: tuple(torch.sort(x)), t(3, 7), reaches="Sort", dtypes=(F32, F16))
    case("sort descending", lambda x: tuple(torch.sort(x, dim=0, descending=True, stable=True)), t(7, 2, dtype=I64))
    case("argsort", lambda x: torch.argsort(x, 1), t(3, 7))
    case("kthvalue", lambda x: tuple(torch.kthvalue(x, 2)), t(3, 7), reaches="Kthvalue")
    case("median", torch.median, t(7))
    case("median dim", lambda x: tuple(torch.median(x, 1)), t(3, 7))
    case("bincount", torch.bincount, index(20, high=6))
    case("bincount weights", torch.bincount, index(20, high=6), t(20))
    case("histc", lambda x: torch.histc(x, 5, -2, 2), t(30))
    case("count_nonzero", torch.count_nonzero, t(3, 4, dtype=I64))
    case("trace", torch.trace, t(4, 4))
    case("renorm", lambda x: torch.renorm(x, 2, 0, 1.0), t(3, 4))


def add_matmul() -> None:
    case("mm", torch.mm, t(3, 4), t(4, 5), reaches="Mm", dtypes=FLOATS, grad=True)
    case("mm transposed", torch.mm, t(3, 4, layout="transposed"), t(4, 5, layout="transposed"), grad=True)
    case("mm strided", torch.mm, t(3, 4, layout="strided"), t(4, 5))
    case("mm empty", torch.mm, t(0, 4), t(4, 5))
    case("mm inner 0", torch.mm, t(3, 0), t(0, 5))
    case("bmm", torch.bmm, t(2, 3, 4), t(2, 4, 5), reaches="BatchMatMul", dtypes=FLOATS, grad=True)
    for left, right in [
        ((3, 4), (4,)),
        ((4,), (4, 3)),
        ((4,), (4,)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 6)),
        ((3, 4), (2, 4, 5)),
    ]:
        case(f"matmul {left} {right}", torch.matmul, t(*left), t(*right), dtypes=(F32, F16), grad=True)
    case("mv", torch.mv, t(3, 4), t(4), grad=True)
    case("dot", torch.dot, t(4), t(4), reaches="Dot", grad=True)
    case(
        "addmm",
        lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2),
        t(3, 5),
        t(3, 4),
        t(4, 5),
        reaches="Addmm",
        dtypes=FLOATS,
        grad=True,
    )
    case("addmm bias", torch.addmm, t(5), t(3, 4), t(4, 5), grad=True)
    case("addmm_", lambda a, b, c: a.clone().addmm_(b, c), t(3, 5), t(3, 4), t(4, 5))
    case("addmv", lambda a, b, c: torch.addmv(a, b, c, beta=0.5, alpha=2), t(3), t(3, 4), t(4), grad=True)
    case(
        "baddbmm",
        lambda a, b, c: torch.baddbmm(a, b, c, beta=0.5, alpha=2),
        t(2, 3, 5),
        t(2, 3, 4),
        t(2, 4, 5),
        reaches="Baddbmm",
        grad=True,
    )
    case("addbmm", torch.addbmm, t(3, 5), t(2, 3, 4), t(2, 4, 5))
    case("addr", torch.addr, t(3, 4), t(3), t(4))
    case("outer", torch.outer, t(3), t(4))
    case("linear", F.linear, t(3, 4), t(5, 4), t(5), dtypes=FLOATS, grad=True)
    case("linear no bias", F.linear, t(2, 3, 4), t(5, 4), grad=True)
    case("linear 3-D bias", F.linear, t(2, 3, 4), t(5, 4), t(5), grad=True)
    case("einsum", lambda a, b: torch.einsum("bij,bjk->bik", a, b), t(2, 3, 4), t(2, 4, 5), grad=True)
    case(
        "attention",
        lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) / 2, -1) @ v,
        t(2, 2, 3, 4),
        t(2, 2, 3, 4),
        t(2, 2, 3, 4),
        grad=True,
    )


def add_norm() -> None:
    for name in ["softmax", "log_softmax"]:
        function = getattr(torch, name)
        case(name, lambda x, f=function: f(x, -1), t(3, 4), dtypes=FLOATS, grad=True)
        case(f"{name} dim 1 of 3", lambda x, f=function: f(x, 1), t(2, 3, 4), grad=True)
        case(f"{name} dtype", lambda x, f=function: f(x, -1, dtype=F32), t(3, 4), dtypes=(F16, BF16), grad=True)
    case(
        "layer_norm",
        lambda x, w, b: F.layer_norm(x, (4,), w, b),
        t(2, 3, 4),
        t(4),
        t(4),
        reaches="LayerNorm",
        dtypes=FLOATS,
        grad=True,
        low_precision=0.03,
    )
    case("layer_norm plain", lambda x: F.layer_norm(x, (3, 4)), t(2, 3, 4), grad=True)
    case("layer_norm eps", lambda x: F.layer_norm(x, (4,), eps=0.5), t(3, 4))
    case("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), t(2, 4, 5), t(4), t(4), grad=True)
    case(
        "batch_norm",
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        t(3, 4, 5, 2),
        t(4),
        t(4),
        grad=True,
    )
    case(
        "batch_norm 2-D",
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        t(6, 4),
        t(4),
        t(4),
        grad=True,
    )
    case("batch_norm statistics", batch_statistics, t(6, 4))
    case(
        "batch_norm eval",
        F.batch_norm,
        t(6, 4),
        t(4, grad=False),
        t(4, low=1, high=2, grad=False),
        grad=True,
    )
    case("normalize", lambda x: F.normalize(x, dim=1), t(3, 4), grad=True)
    case("rms_norm", lambda x, w: F.rms_norm(x, (4,), w, 1e-5), t(2, 3, 4), t(4), grad=True)


def batch_statistics(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Output and the two running statistics that the call updates."""
    mean, var = torch.zeros(4, device=x.device), torch.ones(4, device=x.device)
    return F.batch_norm(x, mean, var, training=True, momentum=0.3), mean, var


def add_loss() -> None:
    for reduction in ("none", "mean", "sum"):
        case(
            f"mse {reduction}",
            lambda x, y, r=reduction: F.mse_loss(x, y, reduction=r),
            t(3, 4),
            t(3, 4, grad=False),
            reaches="MseLoss",
            dtypes=FLOATS,
            grad=True,
        )
        case(
            f"l1 {reduction}",
            lambda x, y, r=reduction: F.l1_loss(x, y, reduction=r),
            t(3, 4),
            t(3, 4, grad=False),
            grad=True,
        )
        case(
            f"smooth_l1 {reduction}",
            lambda x, y, r=reduction: F.smooth_l1_loss(x, y, reduction=r, beta=0.7),
            t(3, 4),
            t(3, 4, grad=False),
            grad=True,
        )
        case(
            f"nll {reduction}",
            lambda x, y, r=reduction: F.nll_loss(x, y, reduction=r),
            t(6, 4),
            index(6, high=4),
            reaches="NLLLoss",
            grad=True,
        )
        case(
            f"cross_entropy {reduction}",
            lambda x, y, r=reduction: F.cross_entropy(x, y, reduction=r),
            t(6, 4),
            index(6, high=4),
            dtypes=(F32, F16),
            grad=True,
        )
        case(
            f"bce {reduction}",
            lambda x, y, r=reduction: F.binary_cross_entropy(x, y, reduction=r),
            t(9, low=0.1, high=0.9),
            t(9, low=0, high=1, grad=False),
            grad=True,
        )
        case(
            f"bce_logits {reduction}",
            lambda x, y, r=reduction: F.binary_cross_entropy_with_logits(x, y, reduction=r),
            t(9),
            t(9, low=0, high=1, grad=False),
            grad=True,
        )
        case(
            f"kl_div {reduction}",
            lambda x, y, r=reduction: F.kl_div(x, y, reduction=r),
            t(9),
            t(9, low=0.1, high=1, grad=False),
        )
        case(
            f"huber {reduction}",
            lambda x, y, r=reduction: F.huber_loss(x, y, reduction=r),
            t(9),
            t(9, grad=False),
            grad=True,
        )
    case(
        "nll weight ignore",
        lambda x, y, w: F.nll_loss(x, y, w, ignore_index=1),
        t(6, 4),
        index(6, high=4),
        t(4, low=1, grad=False),
        grad=True,
    )
    case(
        "cross_entropy smoothing",
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
        t(6, 4),
        index(6, high=4),
        grad=True,
    )
    case("cross_entropy 2d", F.cross_entropy, t(2, 4, 3, 3), index(2, 3, 3, high=4), grad=True)


def add_index() -> None:
    case("select", lambda x: x[1], t(3, 4), dtypes=NUMBERS, grad=False)
    case("slice gradient", lambda x: x[1:, ::2], t(3, 4), grad=True)
    case(
        "slice assign",
        lambda x, y: (z := x.clone(), z.__setitem__((slice(None), slice(0, 2)), y))[0],
        t(3, 4),
        t(3, 2),
        dtypes=NUMBERS,
    )
    case(
        "slice assign scalar",
        lambda x: (z := x.clone(), z.__setitem__((slice(None), 1), 7))[0],
        t(3, 4),
        dtypes=NUMBERS,
    )
    case("index", lambda x, i: x[i], t(5, 4), index(3, high=5), reaches="Index", dtypes=(*NUMBERS, BOOL))
    case("index gradient", lambda x, i: x[i], t(5, 4), index(3, high=5), grad=True)
    case("index two", lambda x, i, j: x[i, j], t(5, 4), index(3, high=5), index(3, high=4), grad=True)
    case("index column", lambda x, i: x[:, i], t(5, 4), index(3, high=4), grad=True)
    case("index apart", lambda x, i, j: x[i, :, j], t(5, 2, 4), index(3, high=5), index(3, high=4), grad=True)
    case("index 2-D", lambda x, i: x[i], t(5, 4), index(2, 3, high=5), grad=True)
    case("index negative", lambda x: x[torch.tensor([-1, 0], device=x.device)], t(5, 4))
    case("index none selected", lambda x: x[torch.zeros(0, dtype=I64, device=x.device)], t(5, 4))
    case("index mask", lambda x, m: x[m], t(5, 4), mask(5, 4), dtypes=NUMBERS)
    case("index mask gradient", lambda x, m: x[m], t(5, 4), mask(5), grad=True)
    case(
        "index_put",
        lambda x, i, v: x.clone().index_put_((i,), v),
        t(5, 4),
        index(1, high=5),
        t(4),
        reaches="IndexPutImpl",
        dtypes=NUMBERS,
    )
    case(
        "index_put accumulate",
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        t(5, 4),
        index(6, high=5),
        t(6, 4),
        grad=True,
    )
    case(
        "index_put column",
        lambda x, i: (z := x.clone(), z.__setitem__((slice(None), i), 5.0))[0],
        t(5, 4),
        index(2, high=4),
    )
    case(
        "index_put nothing",
        lambda x: (z := x.clone(), z.__setitem__(torch.zeros(0, dtype=I64, device=x.device), 5.0))[0],
        t(5, 4),
    )
    case("mask assign", lambda x, m: (z := x.clone(), z.__setitem__(m, 5))[0], t(5, 4), mask(5, 4), dtypes=NUMBERS)
    case(
        "index_select",
        lambda x, i: x.index_select(1, i),
        t(5, 4),
        index(3, high=4),
        reaches="IndexSelect",
        dtypes=NUMBERS,
    )
    case("index_select gradient", lambda x, i: x.index_select(0, i), t(5, 4), index(3, high=5), grad=True)
    case(
        "index_add",
        lambda x, i, s: x.index_add(0, i, s, alpha=2),
        t(5, 4),
        index(3, high=5),
        t(3, 4),
        reaches="IndexAdd",
        grad=True,
    )
    case(
        "index_copy",
        lambda x, s: x.index_copy(0, torch.tensor([2, 0], device=x.device), s),
        t(5, 4),
        t(2, 4),
        grad=True,
    )
    case("index_fill", lambda x, i: x.index_fill(0, i, 3.0), t(5, 4), index(2, high=5), grad=True)
    case("gather", lambda x, i: x.gather(1, i), t(5, 4), index(5, 3, high=4), reaches="Gather", dtypes=NUMBERS)
    case("gather gradient", lambda x, i: x.gather(0, i), t(5, 4), index(2, 4, high=5), grad=True)
    case(
        "scatter",
        lambda x, s: x.scatter(1, torch.tensor([[1, 0]], device=x.device), s),
        t(5, 4),
        t(1, 2),
        reaches="Scatter",
        dtypes=NUMBERS,
    )
    case(
        "scatter gradient",
        lambda x, s: x.scatter(1, torch.tensor([[1, 0]], device=x.device), s),
        t(5, 4),
        t(1, 2),
        grad=True,
    )
    case("scatter value", lambda x, i: x.scatter(0, i, 2.0), t(5, 4), index(2, 4, high=5))
    case("scatter_ value", lambda x, i: x.clone().scatter_(0, i, 2.0), t(5, 4), index(2, 4, high=5))
    case("scatter add", lambda x, i, s: x.scatter(0, i, s, reduce="add"), t(5, 4), index(2, 4, high=5), t(2, 4))
    case(
        "scatter multiply", lambda x, i, s: x.scatter(0, i, s, reduce="multiply"), t(5, 4), index(2, 4, high=5), t(2, 4)
    )
    case(
        "scatter_add",
        lambda x, i, s: x.scatter_add(0, i, s),
        t(5, 4),
        index(6, 4, high=5),
        t(6, 4),
        reaches="ScatterAdd",
        grad=True,
    )
    case("masked_select", lambda x, m: x.masked_select(m), t(5, 4), mask(5, 4), reaches="MaskedSelect", dtypes=NUMBERS)
    case("masked_select broadcast", lambda x, m: x.masked_select(m), t(5, 4), mask(4), grad=True)
    case("nonzero", torch.nonzero, t(5, 4), dtypes=(*NUMBERS, BOOL))
    case("nonzero tuple", lambda x: x.nonzero(as_tuple=True), mask(5, 4))
    case("nonzero 1-D", torch.nonzero, mask(9))
    case("nonzero none", lambda x: torch.nonzero(x * 0), t(5, 4))
    case("unique", torch.unique, t(20, dtype=I64))
    case(
        "unique inverse counts", lambda x: torch.unique(x, return_inverse=True, return_counts=True), t(4, 5, dtype=I64)
    )
    case("unique dim", lambda x: torch.unique(x, dim=0), t(9, 1, dtype=I64))
    case(
        "unique_consecutive",
        lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
        t(20, dtype=I64, low=0, high=1),
    )
    case(
        "embedding",
        F.embedding,
        index(2, 3, high=7),
        t(7, 4),
        reaches="Embedding",
        dtypes=FLOATS,
        grad=True,
    )
    case(
        "embedding padding",
        lambda i, w: F.embedding(i, w, padding_idx=1),
        index(2, 9, high=7),
        t(7, 4),
        reaches="EmbeddingDenseBackward",
        grad=True,
    )
    case("one_hot", lambda i: F.one_hot(i, 5), index(6, high=5))
    case("searchsorted", lambda x: torch.searchsorted(torch.arange(5.0, device=x.device), x), t(9))
    case("bucketize", lambda x: torch.bucketize(x, torch.arange(5.0, device=x.device), right=True), t(9))
    case("take", torch.take, t(3, 4), index(5, high=12))
    case("take_along_dim", lambda x, i: torch.take_along_dim(x, i, 1), t(3, 4), index(3, 2, high=4))


def add_shape() -> None:
    case("cat", lambda x, y: torch.cat((x, y), 1), t(3, 4), t(3, 2), reaches="Cat", dtypes=(*NUMBERS, BOOL))
    case("cat gradient", lambda x, y: torch.cat((x, y), 0), t(3, 4), t(2, 4, layout="transposed"), grad=True)
    case("cat mixed types", lambda x, y: torch.cat((x, y)), t(3, 4), t(2, 4, dtype=I64, grad=False))
    case("cat empty", lambda x, y: torch.cat((x, y)), t(0, 4), t(2, 4))
    case("stack", lambda x, y: torch.stack((x, y), 1), t(3, 4), t(3, 4), reaches="Stack", dtypes=NUMBERS)
    case("stack gradient", lambda x, y: torch.stack((x, y), -1), t(3, 4), t(3, 4), grad=True)
    case("split", lambda x: x.split([1, 2, 1], 1), t(3, 4), grad=False)
    case("chunk", lambda x: x.chunk(2, 1), t(3, 4))
    case("split gradient", lambda x: sum(p.sum() * i for i, p in enumerate(x.split(2, 1))), t(3, 5), grad=True)
    case(
        "transpose contiguous",
        lambda x: x.transpose(0, 2).contiguous(),
        t(2, 3, 4),
        dtypes=(*NUMBERS, BOOL),
        grad=False,
    )
    case("permute contiguous gradient", lambda x: x.permute(2, 0, 1).contiguous(), t(2, 3, 4), grad=True)
    case("reshape", lambda x: x.t().reshape(-1), t(3, 4), dtypes=NUMBERS)
    case("expand contiguous", lambda x: x.expand(3, 4).contiguous(), t(4), dtypes=NUMBERS)
    case("as_strided", lambda x: x.as_strided((2, 3), (1, 2), 1).contiguous(), t(10), grad=True)
    case("diagonal", lambda x: x.diagonal().contiguous(), t(3, 4), grad=True)
    case("unfold", lambda x: x.unfold(0, 3, 1).contiguous(), t(6))
    case("5-D permute", lambda x: x.permute(4, 3, 2, 1, 0).contiguous(), t(2, 3, 1, 2, 2))
    case("flip", lambda x: x.flip(0, 1), t(3, 4), reaches="Flip", dtypes=NUMBERS)
    case("flip gradient", lambda x: x.flip(-1), t(3, 4), grad=True)
    case("roll", lambda x: x.roll((1, 2), (0, 1)), t(3, 4), reaches="Roll", grad=True)
    case("repeat", lambda x: x.repeat(2, 3), t(3, 4), reaches="Repeat", dtypes=NUMBERS)
    case("repeat gradient", lambda x: x.repeat(2, 1, 3), t(3, 4), grad=True)
    case("tile", lambda x: x.tile(2, 2), t(3, 4))
    case("repeat_interleave", lambda x: x.repeat_interleave(2, 0), t(3, 4), grad=True)
    case("repeat_interleave tensor", lambda x, r: x.repeat_interleave(r, 0), t(3, 4), index(3, high=4))
    for counts in ([1, 2, 3], [5], [0, 0, 4]):  # what they add up to is the result's size
        case(
            f"repeat_interleave {counts}",
            lambda x, counts=counts: x.repeat_interleave(torch.tensor(counts, device=x.device), 0),
            t(3, 4),
        )
    case("tril", lambda x: x.tril(-1), t(4, 4), reaches="Tril", dtypes=FLOATS, grad=True)
    case("triu", lambda x: x.triu(1), t(2, 4, 5), reaches="Triu", dtypes=FLOATS, grad=True)
    case("tril_", lambda x: x.clone().tril_(), t(4, 4))
    case("diag", torch.diag, t(4), grad=True)
    case("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=2.0), t(3, 4), reaches="ConstantPadNd", grad=True)
    case("pad reflect", lambda x: F.pad(x, (1, 1), mode="reflect"), t(2, 3, 4), grad=True)
    case("pad replicate", lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"), t(1, 2, 3, 4), grad=True)
    case("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="ij"), t(3), t(4))
    case("clone", torch.clone, t(3, 4, layout="transposed"), dtypes=NUMBERS)
    case("copy from CPU to a slice", copy_into_slice, t(3, 4))
    for source in (F32, F16, BF16, I64, I32, I8, U8, BOOL):
        for target in (F32, F16, BF16, I64, I32, I8, U8, BOOL):
            if source != target:
                case(f"cast {source} to {target}", lambda x, d=target: x.to(d), t(3, 4, dtype=source, low=0))
    case("cast non-contiguous", lambda x: x.to(F16), t(2, 3, 4, layout="transposed"), grad=True)
    case("cast empty", lambda x: x.to(F16), t(0, 4))
    case("complex", lambda x, y: torch.complex(x, y).real + 0, t(3), t(3))


def copy_into_slice(x: torch.Tensor) -> torch.Tensor:
    """A copy from the host into every other column."""
    result = torch.zeros(3, 8, device=x.device)
    result[:, ::2] = x.cpu()
    return result


def add_creation() -> None:
    def factory(name: str, make: Callable[[Any], Any], dtypes: Any = NUMBERS, reaches: str = "") -> None:
        for dtype in dtypes:
            case(f"{name} {dtype}", lambda x, d=dtype: make({"device": x.device, "dtype": d}), t(1), reaches=reaches)

    factory("zeros", lambda o: torch.zeros(3, 4, **o), (*NUMBERS, BOOL))
    factory("ones", lambda o: torch.ones(3, 4, **o), (*NUMBERS, BOOL), "InplaceOne")
    factory("full", lambda o: torch.full((3, 4), 2, **o), NUMBERS)
    factory("arange", lambda o: torch.arange(2, 11, 3, **o), NUMBERS, "Arange")
    factory("linspace", lambda o: torch.linspace(0, 1, 7, **o), (F32, F16), "Linspace")
    factory("logspace", lambda o: torch.logspace(0, 1, 7, **o), (F32,))
    factory("eye", lambda o: torch.eye(3, 4, **o), (F32, F16, I64), "Eye")
    factory("tensor", lambda o: torch.tensor([[1, 2], [3, 4]], **o), NUMBERS)
    factory("scalar_tensor", lambda o: torch.scalar_tensor(3, **o))
    case("arange fraction", lambda x: torch.arange(0, 1, 0.1, device=x.device), t(1))
    case("zeros_like", torch.zeros_like, t(3, 4), dtypes=NUMBERS)
    case("ones_like", torch.ones_like, t(3, 4), dtypes=NUMBERS)
    case("full_like", lambda x: torch.full_like(x, 3), t(3, 4), dtypes=NUMBERS)
    case("empty_like shape", lambda x: torch.empty_like(x).shape, t(3, 4))
    case("new_zeros", lambda x: x.new_zeros(2, 2), t(3, 4), dtypes=NUMBERS)
    case("new_tensor", lambda x: x.new_tensor([1, 2]), t(3, 4))
    case("tril_indices", lambda x: torch.tril_indices(3, 3, device=x.device), t(1))
    case("fill_diagonal_", lambda x: x.clone().fill_diagonal_(3), t(4, 4))
    case("item", lambda x: x[0, 0].item(), t(3, 4), dtypes=NUMBERS)
    case("tolist", lambda x: x.tolist(), t(3, 4), dtypes=NUMBERS)


def add_vision() -> None:
    case(
        "conv2d",
        lambda x, w, b: F.conv2d(x, w, b, padding=1),
        t(2, 3, 5, 5),
        t(4, 3, 3, 3),
        t(4),
        reaches="Convolution",
        dtypes=(F32, F16),
        grad=True,
    )
    case(
        "conv2d stride groups",
        lambda x, w: F.conv2d(x, w, stride=2, groups=2, dilation=2),
        t(2, 4, 7, 7),
        t(4, 2, 3, 3),
        grad=True,
    )
    case("conv1d", F.conv1d, t(2, 3, 7), t(4, 3, 3), t(4), grad=True)
    case("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, stride=2), t(2, 3, 4, 4), t(3, 4, 3, 3), grad=True)
    case("conv3d", F.conv3d, t(1, 2, 4, 4, 4), t(3, 2, 2, 2, 2), grad=True)
    case("max_pool2d", lambda x: F.max_pool2d(x, 2), t(2, 3, 6, 6), grad=True)
    case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1), t(2, 3, 6, 6), grad=True)
    case("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 2), t(2, 3, 6, 6), grad=True)
    case("adaptive_avg_pool2d 1", lambda x: F.adaptive_avg_pool2d(x, 1), t(2, 3, 6, 6), grad=True)
    case("interpolate nearest", lambda x: F.interpolate(x, scale_factor=2), t(2, 3, 4, 4), grad=True)
    case("interpolate bilinear", lambda x: F.interpolate(x, size=(7, 5), mode="bilinear"), t(2, 3, 4, 4), grad=True)
    case(
        "grid_sample",
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        t(1, 2, 4, 4),
        t(1, 3, 3, 2, low=-1, high=1),
        grad=True,
    )
    case("unfold", lambda x: F.unfold(x, 2), t(1, 2, 4, 4), grad=True)


def add_foreach() -> None:
    names = ["add", "sub", "mul", "div", "maximum", "minimum"]
    for name in names:
        function = getattr(torch, f"_foreach_{name}")
        case(
            f"foreach {name} scalar",
            lambda x, y, f=function: f([x, y], 1.5),
            t(3, 4),
            t(5),
            reaches=f"Foreach{name.capitalize()}ScalarV2",
        )
        case(f"foreach {name} list", lambda x, y, f=function: f([x, y], [y.sum() + x, y]), t(3, 4), t(5))
        case(
            f"foreach {name} scalars",
            lambda x, y, f=function: f([x, y], [1.5, 2.5]),
            t(3, 4),
            t(5),
            reaches=f"Foreach{name.capitalize()}ScalarList",
        )
        in_place = getattr(torch, f"_foreach_{name}_")
        case(f"foreach {name}_", lambda x, y, f=in_place: (z := [x.clone(), y.clone()], f(z, 1.5))[0], t(3, 4), t(5))
    for name in ["sqrt", "exp", "abs", "neg", "reciprocal", "sigmoid", "tanh", "log", "sin"]:
        case(
            f"foreach {name}", lambda x, y, f=getattr(torch, f"_foreach_{name}"): f([x, y]), t(3, 4, low=1), t(5, low=1)
        )
    case("foreach pow", lambda x: torch._foreach_pow([x], 2.0), t(5))
    case("foreach norm", lambda x, y: torch._foreach_norm([x, y], 2), t(3, 4), t(5))
    case("foreach lerp", lambda x, y: torch._foreach_lerp([x], [y], 0.3), t(5), t(5))
    case("foreach addcmul", lambda x, y: torch._foreach_addcmul([x], [y], [y], 0.3), t(5), t(5))
    case("foreach addcdiv", lambda x, y: torch._foreach_addcdiv([x], [y], [y], [0.3]), t(5), t(5, low=1))
    case("foreach copy_", lambda x, y: (z := [x.clone()], torch._foreach_copy_(z, [y]))[0], t(5), t(5))
    case("foreach zero_", lambda x: (z := [x.clone()], torch._foreach_zero_(z))[0], t(5))
    for name in ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"]:
        case(f"optimizer {name}", lambda x, y, n=name: optimise(n, x, y), t(3, 4), t(4))
    case("clip_grad_norm_", clip, t(3, 4), t(4))


def rebuilt(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The singular values, and the matrix from its decomposition (whose signs are free)."""
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    return s, (u * s) @ v


def optimise(name: str, *values: torch.Tensor, **how: Any) -> list[torch.Tensor]:
    """Two parameters after three steps."""
    parameters = [torch.nn.Parameter(value.clone()) for value in values]
    optimizer = getattr(torch.optim, name)(parameters, lr=0.1, weight_decay=0.01, **how)
    for _ in range(3):
        optimizer.zero_grad()
        sum((p * p).sum() for p in parameters).backward()
        optimizer.step()
    return [p.detach() for p in parameters]


def clip(*values: torch.Tensor) -> list[torch.Tensor]:
    """Clipped gradients."""
    parameters = [torch.nn.Parameter(value.clone()) for value in values]
    sum((p * p).sum() for p in parameters).backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    return [norm, *(p.grad for p in parameters if p.grad is not None)]


def add_linalg() -> None:
    case("inverse", lambda x: torch.inverse(x + 9 * torch.eye(4, device=x.device)), t(4, 4), grad=True)
    for kw in ({}, {"amsgrad": True}, {"maximize": True}):
        case(
            f"fused AdamW {kw}",
            lambda x, kw=kw: optimise("AdamW", x, fused=True, **kw),
            t(3, 4),
            reaches="ApplyAdamWV2",
        )
    case("qr", lambda x: tuple(torch.linalg.qr(x)), t(4, 3), reaches="LinalgQr")
    case("svd", rebuilt, t(4, 3), reaches="Svd")
    case("interpolate by 1.7", lambda x: F.interpolate(x, scale_factor=1.7), t(1, 2, 4, 4))
    case("interpolate bicubic", lambda x: F.interpolate(x, scale_factor=2.0, mode="bicubic"), t(1, 2, 4, 4), grad=True)
    case("cdist", torch.cdist, t(3, 4), t(5, 4), reaches="Cdist")
    case("cross", torch.linalg.cross, t(4, 3), t(4, 3), grad=True)


def add_attention() -> None:
    shapes = (t(2, 4, 5, 8), t(2, 4, 5, 8), t(2, 4, 5, 8))
    attention = F.scaled_dot_product_attention
    low = 0.03
    how: dict[str, Any] = {"reaches": "FlashAttentionScore", "dtypes": FLOATS, "grad": True, "low_precision": low}
    case("sdpa", attention, *shapes, **how)
    case("sdpa causal", lambda q, k, v: attention(q, k, v, is_causal=True), *shapes, **how)
    case("sdpa scale", lambda q, k, v: attention(q, k, v, scale=0.5), *shapes, **how)
    masked = (*shapes, Input((2, 1, 5, 5), F32, 0, 1, grad=False))
    case(
        "sdpa mask",
        lambda q, k, v, m: attention(q, k, v, attn_mask=(m < 0.7).logical_or(m.isnan())),
        *masked,
        grad=True,
    )
    for name, order in {"inf": float("inf"), "-inf": float("-inf"), "0": 0, "3.5": 3.5}.items():
        case(f"norm {name}", lambda x, p=order: (x.norm(p=p), x.norm(p=p, dim=1)), t(3, 4))


def own(name: str, formula: Callable[..., Any], **how: Any) -> Callable[..., Any]:
    """An operator that only torch_npu has: on the device itself, on the CPU what it is defined as."""

    def function(*values: torch.Tensor) -> Any:
        return getattr(torch_npu, name)(*values, **how) if values[0].device.type == "npu" else formula(*values)

    return function


def rms_norm(x: torch.Tensor, gamma: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rstd = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
    return (x.float() * rstd).to(x.dtype) * gamma, rstd


def add_own() -> None:
    for mode in ("none", "tanh"):
        formula = lambda x, mode=mode: F.gelu(x[..., :4], approximate=mode) * x[..., 4:]  # noqa: E731
        name = f"npu_gelu_mul {mode}"
        case(name, own("npu_gelu_mul", formula, approximate=mode), t(3, 8), reaches="GeluMul")
    swiglu = own("npu_swiglu", lambda x: F.silu(x[..., :4]) * x[..., 4:], dim=-1)
    case("npu_swiglu", swiglu, t(3, 8), reaches="SwiGlu", grad=True)
    case("npu_rms_norm", own("npu_rms_norm", rms_norm), t(3, 8), t(8), reaches="RmsNorm")


def flatten(value: Any) -> list[Any]:
    """The leaves of nested lists and tuples."""
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return [leaf for item in value for leaf in flatten(item)]
    return [value]


def compare(actual: Any, expected: Any, what: str, low_precision: float | None = None) -> None:
    actual, expected = flatten(actual), flatten(expected)
    assert len(actual) == len(expected), f"{what}: {len(actual)} values instead of {len(expected)}"
    for found, wanted in zip(actual, expected, strict=True):
        if isinstance(wanted, torch.Tensor):
            assert isinstance(found, torch.Tensor), f"{what}: {found!r} instead of a tensor"
            assert found.device.type == "npu", f"{what}: on {found.device}"
            low = low_precision if wanted.dtype in (F16, BF16) else None
            torch.testing.assert_close(
                found.cpu(), wanted, rtol=low, atol=low, equal_nan=True, msg=lambda m: f"{what}: {m}"
            )
        elif isinstance(wanted, float):
            torch.testing.assert_close(found, wanted, msg=lambda m: f"{what}: {m}")
        else:
            assert found == wanted, f"{what}: {found!r} instead of {wanted!r}"


def evaluate(case: Case, values: list[torch.Tensor], make_grad: bool) -> tuple[Any, list[torch.Tensor | None]]:
    """Result and gradients of one call."""
    if not make_grad:
        return case.function(*values), []
    wanted = [
        value.requires_grad_() if spec.grad and value.is_floating_point() else value
        for spec, value in zip(case.inputs, values, strict=True)
    ]
    result = case.function(*wanted)
    # Every element gets another weight, so that a permuted gradient shows.
    weight = (
        torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float32)
        .reshape(result.shape)
        .to(result.dtype)
        .to(result.device)
    )
    result.backward(weight)
    return result.detach(), [value.grad for value in wanted if value.requires_grad]


def run(case: Case, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(7)
    host = [spec.make(dtype, generator) for spec in case.inputs]
    device = [spec.on_device(value) for spec, value in zip(case.inputs, host, strict=True)]
    before = calls.counts()
    result, gradients = evaluate(case, device, case.grad)
    torch.npu.synchronize()
    after = calls.counts()
    expected, expected_gradients = evaluate(case, host, case.grad)
    compare(result, expected, "result", case.low_precision)
    assert None not in expected_gradients
    compare(gradients, expected_gradients, "gradient", case.low_precision)
    for name in case.reaches:
        assert after.get(f"aclnn{name}", 0) > before.get(f"aclnn{name}", 0), (
            f"aclnn{name} was not called, but {sorted(n for n in after if after[n] > before.get(n, 0))}"
        )


FAMILIES: dict[str, Callable[[], None]] = {
    "unary": add_unary,
    "activation": add_activation,
    "binary": add_binary,
    "reduce": add_reduce,
    "matmul": add_matmul,
    "norm": add_norm,
    "loss": add_loss,
    "index": add_index,
    "shape": add_shape,
    "creation": add_creation,
    "vision": add_vision,
    "foreach": add_foreach,
    "linalg": add_linalg,
    "attention": add_attention,
    "own": add_own,
}


def main(report: str, *families: str) -> None:
    """Runs the cases of the named families (default: all); writes one JSON line each: what, ok, error, trace."""
    with Path(report).open("w", encoding="utf-8") as lines:
        for family in families or FAMILIES:
            CASES.clear()
            FAMILIES[family]()
            for case in CASES:
                for dtype in case.dtypes:
                    what = f"{case.name} [{str(dtype).removeprefix('torch.')}]"
                    record: dict[str, Any] = {"family": family, "what": what, "ok": True}
                    try:
                        run(case, dtype)
                    except Exception as error:  # the parent judges; a failing operator must not hide the next one
                        record.update(ok=False, error=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
                    print(json.dumps(record), file=lines, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
