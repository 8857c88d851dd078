"""Makes what a case printed fit to be shown: a case may print anything, page and terminal must stay readable."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {0x7F: 0x2421}
# C1, and what is not seen but changes what is: marks of direction, of no width, tags, line and paragraph separators.
_UNSEEN = (
    (0x80, 0xA0),
    (0xAD, 0xAE),
    (0x61C, 0x61D),
    (0x180E, 0x180F),
    (0x200B, 0x2010),
    (0x2028, 0x202F),
    (0x2060, 0x2070),
    (0xFEFF, 0xFF00),
    (0xFFF9, 0xFFFC),
    (0xE0000, 0xE0080),
)
_CONTROLS |= {code: 0xFFFD for first, end in _UNSEEN for code in range(first, end)}


def plain(text: str) -> str:
    """Without colours and cursor movements; other control characters become visible symbols.

    Marks that are not seen themselves are replaced, too: they could make a command look like another one.
    """
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return text.translate(_CONTROLS).encode("utf-8", "backslashreplace").decode("utf-8")


def clip(text: str, head: int = 4_000, tail: int = 12_000) -> tuple[str, int, str]:
    """Beginning, number of characters left out, and end of a text; the end is empty when nothing is left out."""
    if len(text) <= head + tail:
        return text, 0, ""
    start, end = text[:head], text[-tail:]
    # Cut at line ends where there are any, half a line misleads.
    start = start[: start.rfind("\n") + 1] or start
    end = end[end.find("\n") + 1 :] or end
    return start, len(text) - len(start) - len(end), end


def duration(seconds: float) -> str:
    """Two significant places are enough for a figure that nobody judges: 0.83 s, 12.4 s, 3 min 20 s, 1 h 04 min."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def count(number: int, noun: str) -> str:
    """1 rule, 2 rules."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def value(item: Any) -> str:
    """A parameter or note on one line: a string as it is, anything else as JSON."""
    return plain(item) if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def params(point: Mapping[str, Any]) -> str:
    """order=after, threads=4; "only point" for a case without a matrix."""
    return ", ".join(f"{key}={value(item)}" for key, item in point["params"].items()) or "only point"
