"""Compiles Triton kernels with triton-ascend and runs them on the simulated device, by ctypes: no launcher is compiled.

A refusal says who refused: Triton's front end, triton-ascend's adapter, or the simulator's kernel compiler.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import acl
import kernels
import torch
from triton._C.libtriton import ir  # pyright: ignore[reportMissingImports]
from triton.backends.ascend.compiler import AscendBackend  # pyright: ignore[reportMissingImports]
from triton.backends.compiler import GPUTarget  # pyright: ignore[reportMissingImports]
from triton.compiler import ASTSource  # pyright: ignore[reportMissingImports]

FRONT_END, ADAPTER, COMPILER = "front end", "adapter", "compiler"
_STAGE = {"ttir": FRONT_END, "ttadapter": ADAPTER, "npubin": COMPILER}
POINTERS = {
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float64: "*fp64",
    torch.int8: "*i8",
    torch.int16: "*i16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.uint8: "*u8",
    torch.uint16: "*u16",
    torch.uint32: "*u32",
    torch.uint64: "*u64",
    torch.bool: "*i1",
}
# As the launcher's struct has them: every float below 64 bits goes as 32, i1 as 32.
_PACKED = {"i1": "i", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
_PACKED |= {"fp16": "f", "bf16": "f", "fp32": "f", "fp64": "d"}


class Scalar(NamedTuple):
    """A number with its type in the kernel's signature."""

    type: str
    value: Any


class Refused(Exception):
    """A kernel that one of the three does not compile."""

    def __init__(self, by: str, text: str) -> None:
        super().__init__(f"{by}: {text}")
        self.by = by
        self.text = text


@dataclass
class Kernel:
    """A compiled kernel; `types` are those of its arguments in order."""

    name: str
    types: list[str]
    stub: int

    def launch(self, grid: Sequence[int], values: Sequence[int | float | bool]) -> None:
        """Runs it and waits. Pointers are device addresses."""
        grid = (*grid, 1, 1)[:3]
        buffer = bytearray(struct.pack("<QQQ", 1, 0, 0))
        fields = [
            ("Q" if kind[0] == "*" else _PACKED[kind], value) for kind, value in zip(self.types, values, strict=True)
        ]
        for code, value in [*fields, *(("i", n) for n in grid)]:
            alignment = 8 if struct.calcsize(code) == 8 else 4
            buffer += bytes(-len(buffer) % alignment)
            buffer += struct.pack(f"<{code}", value)
        buffer += bytes(-len(buffer) % 8)
        blocks = grid[0] * grid[1] * grid[2]
        acl.call("rtKernelLaunch", self.stub, blocks, bytes(buffer), len(buffer), None, _stream())
        acl.call("aclrtSynchronizeStream", _stream())


_made: dict[str, int] = {}


def _stream() -> int:
    if "stream" not in _made:
        acl.set_device()
        _made["stream"] = acl.stream()
    return _made["stream"]


def compile_kernel(function: Any, types: dict[str, str], constants: dict[str, Any], **options: Any) -> Kernel:
    """`types` by parameter name, as Triton writes them. Raises Refused."""
    backend = AscendBackend(GPUTarget("npu", "Ascend910B3", 0))
    chosen = backend.parse_options(options)
    metadata = {"hash": "x", "target": backend.target, **chosen.__dict__}
    stage = "ttir"
    try:
        context = ir.context()
        ir.load_dialects(context)
        source = ASTSource(fn=function, signature=types, constants=constants)
        module: Any = source.make_ir(chosen, backend.get_codegen_implementation(), backend.get_module_map(), context)
        stages: dict[str, Any] = {}
        backend.add_stages(stages, chosen)
        for stage, step in stages.items():  # noqa: B007 - the handlers below name it
            module = step(module, metadata)
    except subprocess.CalledProcessError as error:
        raise Refused(_STAGE[stage], (error.stderr or b"").decode(errors="replace")) from None
    except Exception as error:
        raise Refused(_STAGE[stage], f"{type(error).__name__}: {error}") from None
    _stream()
    stub = kernels.stub_of(kernels.load(module), metadata["kernel_name"])
    order = [name for name in function.arg_names if name in types]
    return Kernel(metadata["kernel_name"], [types[name] for name in order], stub)


def run(
    function: Any, *arguments: Any, grid: Sequence[int] = (1,), options: dict[str, Any] | None = None, **constants: Any
) -> Kernel:
    """Compiles for these arguments and runs. CPU tensors are copied to the device, and back in place."""
    values = dict(zip((name for name in function.arg_names if name not in constants), arguments, strict=True))
    types = {}
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            types[name] = POINTERS[value.dtype]
        elif isinstance(value, Scalar):
            types[name] = value.type
        else:
            types[name] = "fp32" if isinstance(value, float) else "i32"
    kernel = compile_kernel(function, types, constants, **(options or {}))
    launch(kernel, *arguments, grid=grid)
    return kernel


def launch(kernel: Kernel, *arguments: Any, grid: Sequence[int] = (1,)) -> None:
    """As run(), for a kernel that is compiled."""
    packed, copied = [], []
    for value in arguments:
        if isinstance(value, torch.Tensor):
            assert value.is_contiguous()
            place = acl.malloc(max(value.nbytes, 1))
            acl.call("aclrtMemcpy", place, value.nbytes, value.data_ptr(), value.nbytes, acl.HOST_TO_DEVICE)
            copied.append((value, place))
            packed.append(place)
        else:
            packed.append(value.value if isinstance(value, Scalar) else value)
    try:
        kernel.launch(grid, packed)
        for value, place in copied:
            acl.call("aclrtMemcpy", value.data_ptr(), value.nbytes, place, value.nbytes, acl.DEVICE_TO_HOST)
    finally:
        for _, place in copied:
            acl.call("aclrtFree", place)
