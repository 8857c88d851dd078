"""What of triton.language no kernel for the simulated device can use, who refuses it, and in which words.

docs/simnpu.md has the same table for readers; test_language.py holds both true. An entry whose case works fails.
"""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    what: str  # as the document has it
    by: str  # front end, adapter or compiler
    words: str  # part of the message
    cases: tuple[str, ...]


def each(group: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{group}/{name}" for name in names)


REFUSED = [
    Refusal(
        "`libdevice.round`, `nearbyint`, `trunc` of float16 and bfloat16",
        "front end",
        "xpect",
        (
            *each("unary float16", "libdevice.round", "libdevice.nearbyint", "libdevice.trunc"),
            *each("unary bfloat16", "libdevice.round", "libdevice.nearbyint", "libdevice.trunc"),
        ),
    ),
    Refusal(
        "`libdevice.reciprocal`, `log1p`, `relu`, `tan`, `atan`, `tanh`, `ilogb`, `ldexp`, `tl.math.tanh` of bfloat16",
        "front end",
        "input arg type does not match",
        (
            *each(
                "unary bfloat16",
                *("math.tanh", "libdevice.reciprocal", "libdevice.log1p", "libdevice.relu", "libdevice.tan"),
                *("libdevice.atan", "libdevice.tanh", "libdevice.ilogb"),
            ),
            "binary bfloat16/libdevice.ldexp",
        ),
    ),
    Refusal(
        "`libdevice.atan2`, `libdevice.div_rz` (`tl.math.atan2` works)",
        "front end",
        "_builder",
        each("binary float32", "libdevice.atan2", "libdevice.div_rz"),
    ),
    Refusal(
        "`tl.sort` along another dimension than the last",
        "front end",
        "only supports sorting along the last dimension",
        tuple(f"order {t}/sort 0" for t in ("float32", "float16", "bfloat16", "int8", "int16", "int32", "int64")),
    ),
    Refusal(
        "`tl.gather` of int16, int32, int64",
        "front end",
        "Expected dtype",
        tuple(f"order {t}/gather {axis}" for t in ("int16", "int32", "int64") for axis in (0, 1)),
    ),
    Refusal(
        "`tl.associative_scan` of bfloat16 with a combiner of one's own",
        "front end",
        "PassManager::run failed",
        each("scan bfloat16", *(f"custom {axis}{tail}" for axis in (0, 1) for tail in ("", " reverse"))),
    ),
    Refusal(
        '`tl.dot(…, input_precision="tf32")` (`"ieee"` and `"hf32"` work)',
        "front end",
        "tf32",
        ("dot float32/tf32",),
    ),
    Refusal("`tl.dot_scaled` of 8-bit floats", "front end", "must be bf16 or fp16", ("dot scaled",)),
    Refusal("8-bit floats", "front end", "unexpected type fp8", ("float8",)),
    Refusal(
        "loads and stores by a tensor descriptor",
        "front end",
        "cannot cast",
        ("tensor descriptors", "tensor descriptors that store"),
    ),
    Refusal(
        "`noinline` functions of tensors",
        "front end",
        "non-scalar argument",
        ("noinline functions of tensors",),
    ),
    Refusal("`tl.static_assert` that does not hold", "front end", "never equal", ("static assert fails",)),
    Refusal(
        "`noinline` functions of scalars",
        "adapter",
        "does not reference a valid function",
        ("noinline functions of scalars",),
    ),
    Refusal(
        "`tl.reduce` of three or more tensors at once",
        "adapter",
        "",
        each("reduce vector", "welford mean", "welford m2"),
    ),
    Refusal(
        "the old value of an atomic on a scalar pointer as an address",
        "adapter",
        "",
        ("the old value of an atomic as an address",),
    ),
    Refusal(
        "`tl.reduce` of two tensors at once, with a combiner of one's own",
        "compiler",
        "operation tt.reduce is not simulated: triton-ascend's adapter left it as it was",
        each("reduce vector", "affine 0", "affine 1"),
    ),
    Refusal(
        "`tl.inline_asm_elementwise`",
        "compiler",
        "operation llvm.inline_asm is not simulated",
        ("inline asm",),
    ),
    Refusal(
        "`tl.sync_block_all`: blocks run one after the other",
        "compiler",
        "operation hivm.hir.sync_block is not simulated",
        ("sync of all blocks",),
    ),
    Refusal(
        "`tl.index_select`, `extension.index_put`, `extension.gather_out_to_ub` (`extension.index_select_simd` works)",
        "compiler",
        "the library function triton_",
        ("embeddings gathered by the device", "values put by the device", "elements gathered by the device"),
    ),
    Refusal(
        "indirect memory accesses compiled for another device (`compile_on_910_95`)",
        "compiler",
        "the library function triton_indirect_load is not simulated",
        ("indirect memory of another device",),
    ),
    Refusal(
        '`compile_mode="simt_only"` (`"unstructured_in_simt"` works)',
        "compiler",
        "SIMT kernels",
        ("kernels of threads",),
    ),
]
