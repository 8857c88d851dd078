"""Reads back what a child left: its result records and the texts it printed. Nothing here trusts the child."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORDS_LIMIT = 16 << 20  # bytes; a case with 50,000 checks stays below
HEAD, TAIL = 16 << 10, 48 << 10  # bytes kept of a stream

_REQUIRED = {
    "check": ("ok", "message"),
    "note": ("key", "value"),
    "unsupported": ("reason",),
    "broken": ("message",),
    "versions": (),
    "end": ("how", "checks"),
}


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


def read(path: Path) -> Records:
    """Parse a result file. Whatever is wrong with it ends in `damaged`, never in an exception."""
    records = Records()
    with path.open("rb") as file:
        data = file.read(RECORDS_LIMIT + 1)
    if len(data) > RECORDS_LIMIT:
        records.damaged = f"the case wrote more than {RECORDS_LIMIT} bytes of results"
        return records
    for number, line in enumerate(data.decode("utf-8", "backslashreplace").splitlines(), start=1):
        try:
            entry = json.loads(line)
            kind = entry["kind"]
            missing = [name for name in _REQUIRED[kind] if name not in entry]
        except (ValueError, KeyError, TypeError):
            records.damaged = f"line {number} of the result file is no record: {line[:200]!r}"
            return records
        if missing:
            records.damaged = f"line {number} of the result file lacks {', '.join(missing)}"
            return records
        if records.end is not None:
            records.damaged = f"line {number} of the result file comes after the end record"
            return records
        _sort(records, kind, entry)
    return records


def _sort(records: Records, kind: str, entry: dict[str, Any]) -> None:
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
        records.versions = entry
    else:
        records.end = entry


def text(path: Path) -> str:
    """What a stream said; of a long one the head and the tail, with a first line in brackets that says what was cut."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= HEAD + TAIL:
            return file.read().decode("utf-8", "backslashreplace")
        head = file.read(HEAD)
        file.seek(size - TAIL)
        tail = file.read(TAIL)
    cut = size - HEAD - TAIL
    parts = [part.decode("utf-8", "backslashreplace") for part in (head, tail)]
    return f"[{size} bytes; {cut} in the middle are cut]\n{parts[0]}\n[… {cut} bytes cut …]\n{parts[1]}"
