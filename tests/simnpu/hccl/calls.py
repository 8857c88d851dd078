"""HCCL's C interface by ctypes, for tests of the simulated collectives without torch: ranks start in a blink.

Buffers hold Python numbers; what a collective must give is worked out in Python from every rank's input.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import struct
from collections.abc import Sequence

import acl

from hccl.ranks import Rank

PARAMETER, NOT_SUPPORTED, TIMEOUT, REMOTE = 1, 5, 9, 21  # HcclResult
STREAM_FAILED, STREAM_TIMED_OUT = 507000, 507048
ROOT_INFO_BYTES = 4108

# Name -> (HcclDataType, struct code); bfloat16 is the upper half of a float32.
TYPES = {
    "int8": (0, "b"),
    "int16": (1, "h"),
    "int32": (2, "i"),
    "float16": (3, "e"),
    "float32": (4, "f"),
    "int64": (5, "q"),
    "uint64": (6, "Q"),
    "uint8": (7, "B"),
    "uint16": (8, "H"),
    "uint32": (9, "I"),
    "float64": (10, "d"),
    "bfloat16": (11, ""),
}
REDUCTIONS = {"sum": (0, operator.add), "prod": (1, operator.mul), "max": (2, max), "min": (3, min)}


def pack(kind: str, values: Sequence[float]) -> bytes:
    if kind == "bfloat16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    code = TYPES[kind][1]
    whole = kind not in ("float16", "float32", "float64")
    return struct.pack(f"<{len(values)}{code}", *(map(int, values) if whole else values))


def unpack(kind: str, data: bytes) -> list[float]:
    if kind == "bfloat16":
        return [struct.unpack("<f", b"\0\0" + data[at : at + 2])[0] for at in range(0, len(data), 2)]
    code = TYPES[kind][1]
    return list(struct.unpack(f"<{len(data) // struct.calcsize('<' + code)}{code}", data))


def size_of(kind: str) -> int:
    return len(pack(kind, [0]))


class Buffer:
    """Device memory with numbers of one type."""

    def __init__(self, kind: str, values: Sequence[float]) -> None:
        self.kind = kind
        self.size = len(values) * size_of(kind)
        self.pointer = acl.malloc(max(self.size, 1))
        if self.size:
            acl.write(self.pointer, pack(kind, values))

    def at(self, element: int) -> int:
        return self.pointer + element * size_of(self.kind)

    def values(self) -> list[float]:
        return unpack(self.kind, acl.read(self.pointer, self.size)) if self.size else []


def numbers(rank: int, count: int, seed: int = 0) -> list[float]:
    """A rank's input: small whole numbers, which every type holds exactly, as it does the products of four of them."""
    return [(rank * 5 + i * 3 + seed) % 3 + 1 for i in range(count)]


def reduced(op: str, columns: Sequence[Sequence[float]]) -> list[float]:
    return [functools.reduce(REDUCTIONS[op][1], column) for column in zip(*columns, strict=True)]


def counts(*values: int) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * len(values))(*values)


class Item(ctypes.Structure):
    """HcclSendRecvItem."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("type", ctypes.c_int),
        ("peer", ctypes.c_uint32),
    )


def items(*parts: tuple[str, Buffer, int, int]) -> ctypes.Array[Item]:
    """("send" or "receive", buffer, count, peer) each."""
    made = [Item(int(kind == "receive"), b.pointer, n, TYPES[b.kind][0], peer) for kind, b, n, peer in parts]
    return (Item * len(made))(*made)


def share_root(rank: Rank, members: Sequence[int] | None = None) -> ctypes.Array[ctypes.c_char]:
    """The first member makes the root information and the others get it."""
    members = range(rank.count) if members is None else members
    blob = ctypes.create_string_buffer(ROOT_INFO_BYTES)
    if rank.number == members[0]:
        acl.call("HcclGetRootInfo", blob)
        for other in members[1:]:
            # What is not zero is in the beginning, which passes a pipe in one piece.
            rank.tell(other, blob.raw[:1024])
    else:
        received = rank.hear(1024)
        ctypes.memmove(blob, received, len(received))
    return blob


def init(rank: Rank, members: Sequence[int] | None = None) -> int:
    """A communicator of these ranks (default: all), made from root information."""
    members = range(rank.count) if members is None else members
    blob = share_root(rank, members)
    return acl.out("HcclCommInitRootInfo", len(members), blob, members.index(rank.number), first=False)


def begin(rank: Rank) -> tuple[int, int]:
    """Sets the device, and returns a communicator of all ranks and a stream."""
    acl.set_device(rank.number % int(os.environ["SIMNPU_DEVICES"]))
    return init(rank), acl.stream()


def synchronize(stream: int) -> None:
    acl.call("aclrtSynchronizeStream", stream)


def all_reduce(comm: int, stream: int, buffer: Buffer, count: int, op: str = "sum") -> None:
    kind = TYPES[buffer.kind][0]
    acl.call("HcclAllReduce", buffer.pointer, buffer.pointer, count, kind, REDUCTIONS[op][0], comm, stream)
