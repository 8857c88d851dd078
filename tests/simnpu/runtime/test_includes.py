"""Who includes whom in the simulator: streams and graphs know each other, nothing else goes in circles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import simnpu

CSRC = Path(simnpu.__file__).parent / "csrc"
CIRCLES = [{"runtime/graphs", "runtime/streams"}]
ABOVE_MEMORY = {"runtime/events", "runtime/graphs", "runtime/streams"}


def included(root: Path) -> dict[str, set[str]]:
    """For each part (a header and the source of the same name, without their suffix) the parts that it includes."""
    parts: dict[str, set[str]] = {}
    for folder in ("runtime", "hccl", "ops"):
        for file in sorted((root / folder).glob("*.[ch]*")):
            part = str(file.with_suffix("").relative_to(root))
            paths = re.findall(r'^#include "([^"]+)"', file.read_text(), re.MULTILINE)
            targets = [(file.parent / path).resolve() for path in paths if (file.parent / path).exists()]
            parts.setdefault(part, set()).update(str(path.with_suffix("").relative_to(root)) for path in targets)
            parts[part].discard(part)
    return parts


def reached(parts: dict[str, set[str]], start: str) -> set[str]:
    """All that `start` includes, by however many steps."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for part in parts.get(waiting.pop(), set()) - found:
            found.add(part)
            waiting.append(part)
    return found


def circles(parts: dict[str, set[str]]) -> list[set[str]]:
    """The largest groups in which everybody reaches everybody."""
    beyond = {part: reached(parts, part) for part in parts}
    groups = {frozenset({part, *(other for other in beyond[part] if part in beyond[other])}) for part in parts}
    return sorted((set(group) for group in groups if len(group) > 1), key=sorted)


def judge(root: Path) -> list[str]:
    parts = included(root)
    wrong = [f"in a circle: {', '.join(sorted(circle))}" for circle in circles(parts) if circle not in CIRCLES]
    return wrong + [f"memory reaches {part}" for part in sorted(reached(parts, "runtime/memory") & ABOVE_MEMORY)]


def test_nothing_but_streams_and_graphs_goes_in_circles() -> None:
    assert len(included(CSRC)) > 40
    assert judge(CSRC) == []


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("runtime/memory.cpp", '#include "streams.h"\n', "memory reaches runtime/streams"),
        ("runtime/errors.h", '#include "streams.h"\n', "in a circle: "),
        ("hccl/segment.h", '#include "communicator.h"\n', "in a circle: "),
    ],
)
def test_a_wrong_include_is_told(tmp_path: Path, file: str, line: str, said: str) -> None:
    for source in CSRC.glob("*/*.[ch]*"):
        copy = tmp_path / source.relative_to(CSRC)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(source.read_text())
    (tmp_path / file).write_text(line + (tmp_path / file).read_text())
    assert any(text.startswith(said) for text in judge(tmp_path))
