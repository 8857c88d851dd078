"""How an argument lies in the buffer of a launch: its kind, by the token of Triton's signature, and its place."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KINDS = ("tensor", "i32", "i64", "u32", "u64", "f32", "f64", "bool")
"""In the order of the C++ part's enumeration."""
_TOKENS = {
    **{token: token for token in ("i32", "i64", "u32", "u64", "f32", "f64", "bool")},
    **{"i1": "bool", "int": "i32", "long": "i64", "fp32": "f32", "float": "f32", "fp64": "f64", "double": "f64"},
}
_FORMATS = {"tensor": "Q", "i32": "i", "i64": "q", "u32": "I", "u64": "Q", "f32": "f", "f64": "d", "bool": "i"}


def kind_of(signature: object) -> str | None:
    """The kind for a type of Triton's signature, None for one that has none: smaller integers, half floats,
    descriptors, constants."""
    token = str(signature or "").strip().lower()
    if token.startswith(("*", "memref")) or token == "ptr" or token.startswith("ptr<"):
        return "tensor"
    return _TOKENS.get(token)


def size_of(kind: str) -> int:
    """Bytes that it takes, and what it is aligned to."""
    return struct.calcsize(f"={_FORMATS[kind]}")


def pack(kind: str, value: float) -> bytes:
    """A value that never changes. Raises struct.error or TypeError if it does not fit."""
    return struct.pack(f"<{_FORMATS[kind]}", int(value) if kind == "bool" else value)


class Layout:
    """The buffer: address for the blocks' synchronisation, two pointers that stay null, arguments, grid.

    kinds: of the arguments. ffts: whether the address is there. pure_simt: whether the two pointers are left out.
    """

    def __init__(self, kinds: Iterable[str], *, ffts: bool, pure_simt: bool) -> None:
        self._end, self._widest = 0, 4
        self.ffts = self._place(8) if ffts else None
        if not pure_simt:
            for _ in ("lock", "workspace"):
                self._place(8)
        self.arguments = [self._place(size_of(kind)) for kind in kinds]
        self.grid = self._place(4)
        self._end += 8
        self.size = -(-self._end // self._widest) * self._widest

    def _place(self, size: int) -> int:
        offset = -(-self._end // size) * size
        self._end, self._widest = offset + size, max(self._widest, size)
        return offset

    def __iter__(self) -> Iterator[int]:
        return iter(self.arguments)
