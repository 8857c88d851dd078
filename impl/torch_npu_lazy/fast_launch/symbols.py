"""Integers that remember how they were computed: a launcher that is run with them tells how it makes its grid."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

STEPS = ("constant", "argument", "add", "subtract", "multiply", "floor_divide", "modulo", "negate", "least", "greatest")
"""In the order of the C++ part's enumeration."""
Program = list[tuple[int, int]]


class NotArithmetic(Exception):
    """Something was asked of a symbol that is no whole-number arithmetic. str() says what."""


class Symbol:
    """An argument of a launcher, or what was computed of some. `program` computes it on a stack."""

    __slots__ = ("program",)

    def __init__(self, program: Program) -> None:
        self.program = program

    @classmethod
    def argument(cls, index: int) -> Symbol:
        return cls([(STEPS.index("argument"), index)])

    @property
    def index(self) -> int | None:
        """Of the argument that it is; None if it was computed."""
        step, index = self.program[0]
        return index if len(self.program) == 1 and STEPS[step] == "argument" else None

    def __neg__(self) -> Symbol:
        return Symbol([*self.program, (STEPS.index("negate"), 0)])

    def __pos__(self) -> Symbol:
        return self

    def __index__(self) -> NoReturn:
        raise NotArithmetic("int()")

    def __bool__(self) -> NoReturn:
        raise NotArithmetic("bool()")

    def __getattr__(self, name: str) -> NoReturn:
        raise NotArithmetic(name)

    def __eq__(self, other: object) -> NoReturn:  # type: ignore[override]
        raise NotArithmetic("==")

    __hash__ = None  # type: ignore[assignment]


def program_of(value: Any) -> Program:
    """How a value is computed. Raises NotArithmetic if it is neither a symbol nor a whole number."""
    if isinstance(value, Symbol):
        return value.program
    if isinstance(value, int):
        return [(STEPS.index("constant"), int(value))]
    raise NotArithmetic(type(value).__name__)


def _two(step: str, left: Any, right: Any) -> Symbol:
    return Symbol([*program_of(left), *program_of(right), (STEPS.index(step), 0)])


def _fold(step: str, values: tuple[Any, ...]) -> Any:
    values = tuple(values[0]) if len(values) == 1 else values
    found = values[0]
    for value in values[1:]:
        found = _two(step, found, value)
    return found


def least(*values: Any) -> Any:
    """What stands for `min`."""
    return _fold("least", values)


def greatest(*values: Any) -> Any:
    """What stands for `max`."""
    return _fold("greatest", values)


for _name, _step in (
    ("add", "add"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("floordiv", "floor_divide"),
    ("mod", "modulo"),
):
    setattr(Symbol, f"__{_name}__", lambda self, other, step=_step: _two(step, self, other))
    setattr(Symbol, f"__r{_name}__", lambda self, other, step=_step: _two(step, other, self))
