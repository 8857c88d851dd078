"""Which shared libraries are mapped into this process: the kernel's word, which no Python-level tidying changes."""

from __future__ import annotations

from pathlib import Path

from ._session import session


def mapped() -> frozenset[str]:
    """Paths of all mapped shared libraries (symbolic links resolved by the kernel)."""
    found = set()
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[5:]
        if path and ".so" in path[0]:
            found.add(path[0].removesuffix(" (deleted)"))
    return frozenset(found)


def absent(*stems: str) -> None:
    """Check that no mapped library's file name starts with one of `stems` ("libopapi"). Raises CheckFailed."""
    for stem in stems:
        found = _matching(stem)
        if found:
            session().failed(f"{stem} is mapped", expected=f"no library {stem}* is mapped", found=", ".join(found))
        session().passed(f"{stem} is not mapped")


def present(*stems: str) -> None:
    """Check that for each stem a library whose file name starts with it is mapped. Raises CheckFailed."""
    for stem in stems:
        if not _matching(stem):
            session().failed(f"{stem} is not mapped", expected=f"a library {stem}* is mapped", found="none")
        session().passed(f"{stem} is mapped")


def _matching(stem: str) -> list[str]:
    return sorted(path for path in mapped() if path.rpartition("/")[2].startswith(stem))
