"""The parts of planned fast launch that need neither torch nor a device."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from torch_npu_lazy import fast_launch
from torch_npu_lazy.fast_launch import codegen, kinds, launcher, patch, symbols


@pytest.mark.parametrize("value", ["1", "true", " YES ", "On", "y"])
def test_these_values_switch_it_on(value: str) -> None:
    assert fast_launch.asked_for(value)


@pytest.mark.parametrize("value", [None, "", "0", "enable", "2", "no", "tru"])
def test_all_others_leave_it_off(value: str | None) -> None:
    assert not fast_launch.asked_for(value)


@pytest.mark.parametrize(
    ("signature", "kind"),
    [
        *(("*fp32", "tensor"), ("*bf16", "tensor"), ("memref<?xf32>", "tensor")),
        *(("i1", "bool"), ("bool", "bool"), ("i32", "i32"), ("int", "i32"), ("I64", "i64"), (" u32 ", "u32")),
        *(("u64", "u64"), ("long", "i64"), ("fp32", "f32"), ("f32", "f32"), ("float", "f32"), ("double", "f64")),
        *((name, None) for name in ("i8", "i16", "u8", "fp16", "bf16", "constexpr", "", "index", "ptrdiff")),
        # Whole tokens: no kind is found inside another word.
        *((name, None) for name in ("tensordesc<f32[1]>", "vector<4xi32>", "i32x4", "nvTmaDesc")),
    ],
)
def test_a_kind_is_a_whole_token_of_the_signature(signature: str, kind: str | None) -> None:
    assert kinds.kind_of(signature) == kind


@pytest.mark.parametrize(
    ("sequence", "ffts", "pure_simt", "lies"),
    [
        (("tensor", "i32"), False, False, ([16, 24], 28, 40)),
        (("tensor", "i32"), True, False, ([24, 32], 36, 48)),
        (("i32",), False, True, ([0], 4, 16)),
        (("tensor", "bool", "f64"), False, False, ([16, 24, 32], 40, 56)),
        ((), False, True, ([], 0, 12)),
    ],
)
def test_the_buffer_lies_as_specified(
    sequence: tuple[str, ...], ffts: bool, pure_simt: bool, lies: tuple[list[int], int, int]
) -> None:
    layout = kinds.Layout(sequence, ffts=ffts, pure_simt=pure_simt)
    assert (layout.arguments, layout.grid, layout.size) == lies


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize(("ffts", "pure_simt"), [*itertools.product([False, True], repeat=2)])
def test_arguments_are_aligned_in_order_and_apart(count: int, ffts: bool, pure_simt: bool) -> None:
    for sequence in itertools.product(kinds.KINDS, repeat=count):
        layout = kinds.Layout(sequence, ffts=ffts, pure_simt=pure_simt)
        end = 8 * ffts + 16 * (not pure_simt)
        for kind, offset in zip(sequence, layout, strict=True):
            size = kinds.size_of(kind)
            assert offset % size == 0
            assert 0 <= offset - end < size
            end = offset + size
        assert layout.grid == end
        assert layout.size - (layout.grid + 12) in range(8)


def run(program: symbols.Program, *arguments: int) -> int:
    """What the C++ part computes."""
    two = {
        "add": int.__add__,
        "subtract": int.__sub__,
        "multiply": int.__mul__,
        "floor_divide": int.__floordiv__,
        "modulo": int.__mod__,
        "least": min,
        "greatest": max,
    }
    stack: list[int] = []
    for code, value in program:
        step = symbols.STEPS[code]
        if step == "constant":
            stack.append(value)
        elif step == "argument":
            stack.append(arguments[value])
        elif step == "negate":
            stack.append(-stack.pop())
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(two[step](left, right))
    (result,) = stack
    return result


@pytest.mark.parametrize(
    "formula",
    [
        lambda n, m: n + 0 * m,
        lambda n, m: -(n // -256) + 0 * m,
        lambda n, m: (n + 32 - 1) // 32 + m,
        lambda n, m: 7 - n % 5 * m,
        lambda n, m: symbols.greatest(n, m, 3) - symbols.least(n, 4),
        lambda n, m: 100 // m + 1 - n,
    ],
)
def test_symbols_remember_what_was_computed_of_them(formula) -> None:
    program = symbols.program_of(formula(symbols.Symbol.argument(0), symbols.Symbol.argument(1)))
    for n, m in itertools.product((-300, -1, 0, 1, 255, 256, 257), (-3, 1, 2, 9)):
        plain = formula(n, m) if formula.__code__.co_names == () else None
        expected = plain if plain is not None else max(n, m, 3) - min(n, 4)
        assert run(program, n, m) == expected


@pytest.mark.parametrize(
    "ask", [bool, int, lambda s: s == 1, lambda s: s / 2, lambda s: s.bit_length(), lambda s: s + 0.5, lambda s: [0][s]]
)
def test_a_symbol_refuses_what_is_no_whole_number_arithmetic(ask) -> None:
    with pytest.raises((symbols.NotArithmetic, TypeError)):
        ask(symbols.Symbol.argument(0))


@pytest.mark.parametrize("line", ["k.run(a, 4, stream=s)", "k.run(stream=s)", "k.run(*args, stream=f(0))"])
def test_a_line_that_launches_is_known(line: str) -> None:
    assert codegen._launches(line, "k")


@pytest.mark.parametrize(
    "line",
    [
        *("k.run(a, stream=s, grid=g)", "k.run(a)", "x = k.run(a, stream=s)", "k.run(a, stream=s); f()"),
        *("other.run(a, stream=s)", "k.run(a, stream=s", "k.run(a, **more)", "k.launch(a, stream=s)"),
    ],
)
def test_a_line_of_another_form_stays(line: str) -> None:
    assert not codegen._launches(line, "k")


class Base:
    def inherited(self) -> str:
        return "inherited"


class Owner(Base):
    def own(self) -> str:
        return "own"


def layer(function):
    def around(self) -> str:
        return f"({function(self)})"

    return around


def test_patches_are_applied_once() -> None:
    owner = type("Once", (Owner,), {"own": lambda _: "mine"})
    for _ in range(2):
        patch.apply(((owner, "own", layer), (owner, "inherited", layer)))
    assert (owner().own(), owner().inherited()) == ("(mine)", "(inherited)")


def test_a_patch_that_fails_takes_back_those_before_it() -> None:
    def fails(_: object) -> object:
        raise KeyError("the last one")

    own = Owner.own
    with pytest.raises(KeyError, match="the last one"):
        patch.apply(((Owner, "own", layer), (Owner, "inherited", layer), (Owner, "own", fails)))
    assert Owner.own is own
    assert "inherited" not in vars(Owner)


@pytest.mark.parametrize("hook", [None, object(), "empty chain", "full chain"])
def test_a_chain_of_hooks_is_looked_at_as_it_is_now(hook: object) -> None:
    calls = [print] if hook == "full chain" else []
    chain = type("HookChain", (), {"calls": calls})()
    given = chain if isinstance(hook, str) else hook
    one = SimpleNamespace(__globals__={"launch_enter_hook": given, "launch_exit_hook": None})
    active, lists = launcher.hooks(one)
    assert active == (hook is not None and hook != "empty chain")
    assert all(each is calls for each in lists)
    assert len(lists) == isinstance(hook, str)


@pytest.mark.parametrize("one", [print, SimpleNamespace(), len, lambda stream: stream])
def test_what_is_no_launcher_cannot_be_planned(one: object) -> None:
    with pytest.raises(launcher.Unplannable, match="launcher_unknown"):
        launcher.describe(one)
