"""The checks that compare values. Each says what was expected and what was found."""

from __future__ import annotations

import math
import re
import sys
from types import TracebackType
from typing import Any

from ._session import CheckFailed, ProbeError, Unsupported, session, show

# dtype name -> (rtol, atol): about the rounding of one operation in that format; other dtypes are compared exactly.
TOLERANCES = {
    "torch.float16": (1e-3, 1e-5),
    "torch.bfloat16": (1.6e-2, 1e-5),
    "torch.float32": (1.3e-6, 1e-5),
    "torch.float64": (1e-7, 1e-7),
    "torch.complex64": (1.3e-6, 1e-5),
    "torch.complex128": (1e-7, 1e-7),
}


def check(condition: Any, sentence: str, **facts: Any) -> None:
    """Check that `condition` is true. `sentence` says what must hold; `facts` are shown when it does not (their repr,
    2000 characters each at most). Raises CheckFailed."""
    if condition:
        session().passed(sentence)
    else:
        session().failed(sentence, facts=facts)


def same(actual: Any, expected: Any, what: str) -> None:
    """Check that `actual is expected`. `what` names it in the record. Raises CheckFailed."""
    if actual is expected:
        session().passed(f"{what} is the same object")
    else:
        session().failed(
            f"{what} is not the same object",
            expected=f"{show(expected)} (id {id(expected):#x})",
            found=f"{show(actual)} (id {id(actual):#x})",
        )


def equal(actual: Any, expected: Any, what: str) -> None:
    """Check that `actual == expected`, whose result must be a boolean (for tensors: `close`). `what` names it in the
    record. Raises CheckFailed."""
    if actual == expected:
        session().passed(f"{what} is equal")
    else:
        session().failed(f"{what} differs", expected=show(expected), found=show(actual))


def close(actual: Any, expected: Any, what: str, rtol: float | None = None, atol: float | None = None) -> None:
    """Check that |actual - expected| <= atol + rtol * |expected| for floats, tensors on any device, and lists, tuples
    and dicts of them, which must agree in length and keys; anything else must be equal.

    Tensors must agree in shape and dtype; values are compared on the CPU. Without tolerances those of the dtype hold
    (integers and booleans: exact). A NaN is close to nothing. Raises CheckFailed, with the first place that differs.
    """
    problem = _apart(actual, expected, rtol, atol, "")
    if problem is None:
        session().passed(f"{what} is close")
    else:
        wanted, found = problem
        session().failed(f"{what} is not close", expected=wanted, found=found)


def _apart(actual: Any, expected: Any, rtol: float | None, atol: float | None, at: str) -> tuple[str, str] | None:
    """None when close, else (expected, found) in words."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(expected, torch.Tensor):
        return _tensors_apart(actual, expected, rtol, atol, at)
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or list(actual) != list(expected):
            return f"{at}keys {list(expected)}", show(list(actual) if isinstance(actual, dict) else actual)
        pairs = [(f"{at}[{key!r}] ", actual[key], expected[key]) for key in expected]
    elif isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            return f"{at}{len(expected)} values", show(actual)
        pairs = [(f"{at}[{index}] ", *pair) for index, pair in enumerate(zip(actual, expected, strict=True))]
    elif isinstance(expected, float) and isinstance(actual, (int, float)):
        relative, absolute = _tolerance("torch.float64", rtol, atol)
        if math.isclose(actual, expected, rel_tol=0.0, abs_tol=absolute + relative * abs(expected)):
            return None
        return f"{at}{expected!r} ± {absolute:g} ± {relative:g}·|expected|", repr(actual)
    else:
        return None if actual == expected else (f"{at}{show(expected)}", show(actual))
    for inner, found, wanted in pairs:
        problem = _apart(found, wanted, rtol, atol, inner)
        if problem is not None:
            return problem
    return None


def _tensors_apart(
    actual: Any, expected: Any, rtol: float | None, atol: float | None, at: str
) -> tuple[str, str] | None:
    torch: Any = sys.modules["torch"]
    if not isinstance(actual, torch.Tensor):
        return f"{at}a tensor", show(actual)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{at}{tuple(expected.shape)} {expected.dtype}", f"{tuple(actual.shape)} {actual.dtype}"
    relative, absolute = _tolerance(str(expected.dtype), rtol, atol)
    wide = torch.complex128 if expected.dtype.is_complex else torch.float64
    exact = expected.dtype in (torch.int64, torch.uint64) and not relative and not absolute
    found, wanted = (side.detach().to("cpu") for side in (actual, expected))
    if exact:
        wrong = found != wanted
        difference = (found - wanted).abs()
    else:
        found, wanted = found.to(wide), wanted.to(wide)
        difference = (found - wanted).abs()
        difference = torch.where(found == wanted, torch.zeros_like(difference), difference)  # inf - inf is NaN
        wrong = ~(difference <= absolute + relative * wanted.abs())
    if not bool(wrong.any()):
        return None
    index = tuple(int(axis) for axis in wrong.nonzero()[0])
    return (
        f"{at}within {absolute:g} + {relative:g}·|expected|; at {list(index)}: {wanted[index].item()!r}",
        f"{found[index].item()!r}; {int(wrong.sum())} of {wrong.numel()} values differ, by up to "
        f"{difference[wrong].max().item():g}",
    )


def _tolerance(dtype: str, rtol: float | None, atol: float | None) -> tuple[float, float]:
    relative, absolute = TOLERANCES.get(dtype, (0.0, 0.0))
    return relative if rtol is None else rtol, absolute if atol is None else atol


Kinds = type[BaseException] | tuple[type[BaseException], ...]


class Caught:
    """What `raises` gives to `as`."""

    value: BaseException
    """The exception; there after the body has ended."""

    def __init__(self, kind: Kinds, match: str | None) -> None:
        self._kind, self._match = kind, match

    def __enter__(self) -> Caught:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        kinds = self._kind if isinstance(self._kind, tuple) else (self._kind,)
        wanted = " or ".join(each.__name__ for each in kinds) + (f" matching {self._match!r}" if self._match else "")
        if value is None:
            session().failed(f"{wanted} is raised", expected=wanted, found="no exception")
            return False
        if isinstance(value, (CheckFailed, ProbeError, Unsupported)):
            return False
        if not isinstance(value, self._kind) or (self._match and not re.search(self._match, str(value))):
            try:
                session().failed(f"{wanted} is raised", expected=wanted, found=f"{type(value).__name__}: {value}")
            except CheckFailed as failure:
                raise failure from value
        self.value = value
        session().passed(f"{wanted} is raised")
        return True


def raises(kind: Kinds, match: str | None = None) -> Caught:
    """`with raises(TypeError, match="regex") as caught:` — check that the body raises this; `caught.value` is the
    exception. `kind` may be a tuple: one of these; `match` is searched for in the exception's text. Raises CheckFailed
    when nothing or something else is raised (which is its cause then); lets the probe's own exceptions through."""
    return Caught(kind, match)
