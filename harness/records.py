"""Takes in what a child tells: its result records and the texts it printed. Whatever is wrong with them is said of the
point; nothing here raises for it."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .inside.sealing import KEY_BYTES, Chain

RECORDS_LIMIT = 16 << 20  # bytes; a case with 50,000 checks stays below
TEXT_LIMIT = 16 << 10  # characters of a single text in a record
DEPTH_LIMIT = 50  # of lists and tables in a note
HEAD, TAIL = 16 << 10, 48 << 10  # bytes kept of a stream

ENDS = ("returned", "unsupported", "exit", "raised")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_table_of_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_version(value: dict[str, Any]) -> bool:
    return all(_is_text_or_none(value.get(name)) for name in ("version", "file"))


def _is_end(value: object) -> bool:
    return isinstance(value, str) and value in ENDS


def _is_anything(value: object) -> bool:  # noqa: ARG001 - one of the tests of a field
    return True


# Per kind of record: its fields, those that must be there first.
_REQUIRED = {
    "check": {"ok": _is_flag, "message": _is_text},
    "note": {"key": _is_text, "value": _is_anything},
    "unsupported": {"reason": _is_text},
    "broken": {"message": _is_text},
    "versions": {},
    "end": {"how": _is_end, "checks": _is_count, "failures": _is_count},
}
_OPTIONAL = {
    "check": {
        "expected": _is_text_or_none,
        "found": _is_text_or_none,
        "facts": _is_table_of_texts,
        "import_stack": _is_texts,
        "traceback": _is_texts,
    },
    "end": {"message": _is_text, "traceback": _is_texts, "type": _is_text, "probe_error": _is_flag},
}
# What an end of that kind must tell besides.
_TOLD = {"exit": ("message", "traceback"), "raised": ("type", "message", "traceback", "probe_error")}


@dataclass
class Records:
    """The child's records, sorted by kind. `damaged` says why they cannot be believed, or is None."""

    checks: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    unsupported: str | None = None
    broken: str | None = None
    versions: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] | None = None
    damaged: str | None = None


class Channel:
    """The runner's end of the socket on which a child tells its records. What has arrived cannot be taken back: a
    socket, unlike a file or a pipe, cannot be opened a second time by those who find it in /proc.

    descriptor: where it is read. childs: what the child gets.
    """

    def __init__(self) -> None:
        self._own, self._childs = socket.socketpair()
        self._own.setblocking(False)
        self._key = os.urandom(KEY_BYTES)
        self._own.send(self._key)
        self._received = bytearray()
        self._overflow = False
        self.descriptor, self.childs = self._own.fileno(), self._childs.fileno()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self._own.close()
        self._childs.close()

    def drain(self) -> bool:
        """Take in what is there, without waiting. False: nothing more can come."""
        while True:
            try:
                data = self._own.recv(1 << 16)
            except BlockingIOError:
                return True
            except ConnectionError:  # the child has ended without having read the key
                return False
            if not data:
                return False
            if len(self._received) + len(data) > RECORDS_LIMIT:
                self._overflow = True  # and go on reading, so that the child does not wait for us
            else:
                self._received += data

    def records(self) -> Records:
        """What has arrived, checked."""
        if self._overflow:
            return Records(damaged=f"the case told more than {RECORDS_LIMIT} bytes of results")
        return read(bytes(self._received), self._key)


class _Damaged(Exception):
    """Records that cannot be believed; str() says why."""


def read(data: bytes, key: bytes) -> Records:
    """Parse what a child has told. Whatever is wrong with it ends in `damaged`, never in an exception."""
    records = Records()
    chain = Chain(key)
    *lines, rest = data.split(b"\n")
    try:
        for number, line in enumerate(lines, start=1):
            seal, _, record = line.partition(b" ")
            if seal != chain.seal(record):
                raise _Damaged(f"record {number} is not the next one that the probe has sent: {_shown(line)}")
            if records.end is not None:
                raise _Damaged(f"record {number} comes after the end record")
            _sort(records, _parsed(number, record))
        if rest:
            raise _Damaged(f"record {len(lines) + 1} is cut off: {_shown(rest)}")
        _compare(records)
    except _Damaged as error:
        records.damaged = str(error)
    return records


def _shown(record: bytes) -> str:
    return repr(record[:200].decode("utf-8", "backslashreplace"))


def _parsed(number: int, record: bytes) -> dict[str, Any]:
    def no_number(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number that a report can hold")

    try:
        entry = json.loads(record.decode("utf-8"), parse_constant=no_number)
        required = _REQUIRED[entry["kind"]]
    except RecursionError:  # how deep json goes differs between Python's releases
        raise _Damaged(f"record {number} is nested too deeply: {_shown(record)}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise _Damaged(f"record {number} is none: {type(error).__name__}: {error}: {_shown(record)}") from None
    if missing := [name for name in required if name not in entry]:
        raise _Damaged(f"record {number} lacks {', '.join(missing)}: {_shown(record)}")
    for name, right in (required | _OPTIONAL.get(entry["kind"], {})).items():
        if name in entry and not right(entry[name]):
            raise _Damaged(f"record {number}: {name!r} has no value that it can have: {_shown(record)}")
    if _depth(entry) > DEPTH_LIMIT:
        raise _Damaged(f"record {number} is nested too deeply, in more than {DEPTH_LIMIT} levels: {_shown(record)}")
    return {name: _clipped(value) for name, value in entry.items()}


def _depth(value: object) -> int:
    deepest, level = 0, [value]
    while level:
        level = [
            inner
            for outer in level
            if isinstance(outer, (list, dict))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        deepest += 1
    return deepest


def _clipped(value: Any) -> Any:
    """Texts of a size that a report and a terminal can show."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_LIMIT else f"{value[:TEXT_LIMIT]}… ({len(value)} characters)"
    if isinstance(value, list):
        return [_clipped(item) for item in value]
    if isinstance(value, dict):
        return {_clipped(name): _clipped(item) for name, item in value.items()}
    return value


def _sort(records: Records, entry: dict[str, Any]) -> None:
    kind = entry["kind"]
    if kind == "check":
        records.checks += 1
        if not entry["ok"]:
            records.failed.append(entry)
    elif kind == "note":
        records.notes[entry["key"]] = entry["value"]
    elif kind == "unsupported":
        records.unsupported = entry["reason"]
    elif kind == "broken":
        records.broken = entry["message"]
    elif kind == "versions":
        if not all(_is_version(value) for value in entry.values() if isinstance(value, dict)):
            raise _Damaged("the versions record has values that are no texts")
        records.versions = {name: value for name, value in entry.items() if isinstance(value, dict)}
    else:
        if missing := [name for name in _TOLD.get(entry["how"], ()) if name not in entry]:
            raise _Damaged(f"the end record ({entry['how']}) lacks {', '.join(missing)}")
        records.end = entry


def _compare(records: Records) -> None:
    """The child counts what it sends. A failed check that could not be sent must not become a pass."""
    if records.end is None:
        return
    arrived = (records.checks, len(records.failed))
    counted = (records.end["checks"], records.end["failures"])
    if arrived != counted:
        raise _Damaged(
            f"the case counted {counted[0]} checks, {counted[1]} failed; {arrived[0]} arrived, {arrived[1]} failed"
        )


def text(descriptor: int) -> str:
    """What a file holds; of a long one the head and the tail, with a first line in brackets that says what was cut. By
    its descriptor: a case may have removed the name."""
    size = os.fstat(descriptor).st_size
    if size <= HEAD + TAIL:
        return os.pread(descriptor, size, 0).decode("utf-8", "backslashreplace")
    head, tail = os.pread(descriptor, HEAD, 0), os.pread(descriptor, TAIL, size - TAIL)
    cut = size - HEAD - TAIL
    parts = [part.decode("utf-8", "backslashreplace") for part in (head, tail)]
    return f"[{size} bytes; {cut} in the middle are cut]\n{parts[0]}\n[… {cut} bytes cut …]\n{parts[1]}"
