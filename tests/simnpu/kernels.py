"""Kernels' binaries and their launches by ctypes, for tests of the simulated runtime without torch."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import tempfile
from pathlib import Path

import acl

from simnpu.build import SOURCE, find_compiler

ARGUMENT_BYTES = 56
_stubs: list[ctypes.c_uint64] = []  # whose addresses stand for kernels


def compile_binary() -> bytes:
    """The shared object of simnpu/csrc/tests/kernels.cpp, as a kernel compiler writes one per kernel."""
    compiler, _ = find_compiler()
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory, "kernels.so")
        source = str(SOURCE / "tests" / "kernels.cpp")
        command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-I", str(SOURCE / "include"), source]
        subprocess.run([*command, "-o", str(made)], check=True)
        return sealed(made.read_bytes())


def sealed(image: bytes) -> bytes:
    """With the checksum behind it that simnpu/kernel.h asks for."""
    checksum = 0xCBF29CE484222325
    for byte in image:
        checksum = (checksum ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return image + b"simnpuOK" + struct.pack("<Q", checksum)


class DeviceBinary(ctypes.Structure):
    """rtDevBinary_t."""

    _fields_ = (
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("data", ctypes.c_char_p),
        ("length", ctypes.c_uint64),
    )


def described(data: bytes) -> DeviceBinary:
    return DeviceBinary(0x41415246, 0, data, len(data))


def load(data: bytes | None = None) -> int:
    """Registers a binary (default: the tests' own) and returns its handle."""
    binary = described(compile_binary() if data is None else data)
    return acl.out("rtDevBinaryRegister", ctypes.byref(binary), first=False)


def new_stub() -> int:
    _stubs.append(ctypes.c_uint64())
    return ctypes.addressof(_stubs[-1])


def stub_of(binary: int, name: str) -> int:
    """Registers the kernel under a new stub."""
    stub = new_stub()
    acl.call("rtFunctionRegister", binary, stub, f"{name}_0".encode(), name.encode(), 0)
    return stub


def packed(pointer: int, index: int = 0, blocks: int = 1, *, ffts: bool = True, workspace: int = 0) -> bytes:
    """The argument buffer: FFTS address, lock, workspace, the pointer, an int64, the grid."""
    front = struct.pack("<QQ", 0, workspace) if not ffts else struct.pack("<QQQ", 8, 0, workspace)
    return front + struct.pack("<Qqiiii", pointer, index, blocks, 1, 1, 0)


def launch(stub: int, stream: int, pointer: int, index: int = 0, blocks: int = 1, *, ffts: bool = True) -> None:
    arguments = packed(pointer, index, blocks, ffts=ffts)
    acl.call("rtKernelLaunch", stub, blocks, arguments, len(arguments), None, stream)


def integers(pointer: int, count: int) -> list[int]:
    return list(struct.unpack(f"<{count}i", acl.read(pointer, 4 * count)))
