"""Directories for one point each, of this user alone, which are gone afterwards: whatever a case has put there, and
also when its run was killed."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

PREFIX = "conformance-"
UNNAMED = ".conformance-"
"""While a directory is being made: nobody looks for these names."""
LONGEST_PLACE = 40
"""Characters of the directory that scratch directories lie in. A socket's path has at most 107: multiprocessing's adds
30 to TMPDIR, a scratch directory's name and `tmp` 25."""
LOCK = "lock"


def place() -> Path:
    """Where scratch directories are made: in TMPDIR, or in /tmp where that is too long for a case's sockets."""
    chosen = tempfile.gettempdir()
    return Path(chosen if len(os.fsencode(chosen)) <= LONGEST_PLACE else "/tmp")


class Scratch:
    """A directory with these folders in it. Raises OSError where none can be made."""

    def __init__(self, folders: Iterable[str]) -> None:
        unnamed = Path(tempfile.mkdtemp(prefix=UNNAMED, dir=place()))
        # As long as this process lives: what is not locked, nobody uses. Locked before it has a name that others seek.
        self._lock: IO[bytes] = (unnamed / LOCK).open("xb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        for folder in folders:
            (unnamed / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = unnamed.with_name(PREFIX + unnamed.name.removeprefix(UNNAMED))
        unnamed.rename(self.path)

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> str | None:
        """Remove it, once. Returns what is wrong with it, or None."""
        if self._lock.closed:
            return None
        try:
            if not self.path.is_dir():
                return "the case removed its scratch directory, which holds its home and its temporary files"
            _remove(self.path)
        except OSError as error:
            return f"the case's scratch directory {self.path} cannot be removed: {error}"
        finally:
            self._lock.close()
        return None


def sweep() -> None:
    """Remove the directories of runs that were killed before they could do so themselves; nobody else's."""
    for root in place().glob(f"{PREFIX}*"):
        # One that another process is removing right now, or that cannot be removed: not in the way of this run.
        with contextlib.suppress(OSError):
            _sweep(root)


def _sweep(root: Path) -> None:
    own = os.getuid()
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != own:
        return
    # Not followed and not waited for: anybody can make something of these names.
    descriptor = os.open(root / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as lock:
        held = os.fstat(descriptor)
        if not stat.S_ISREG(held.st_mode) or held.st_uid != own:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(root)


def _remove(root: Path) -> None:
    """Remove a directory of any depth, with what is read-only in it; the lock last, so that nobody finds it unlocked.

    Neither recursion nor long paths: each directory is moved up before it is looked into.
    """
    number = itertools.count()
    pending = [root]
    while pending:
        folder = pending.pop()
        folder.chmod(0o700)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.path, 0o700)  # noqa: PTH101 - an entry is no path; to move a directory is to write in it
                    moved = root / f".{next(number)}"
                    while moved.exists():
                        moved = root / f".{next(number)}"
                    if Path(entry.path).parent != root:
                        Path(entry.path).rename(moved)
                        pending.append(moved)
                    else:
                        pending.append(Path(entry.path))
                elif folder != root or entry.name != LOCK:
                    os.unlink(entry.path)  # noqa: PTH108 - an entry is no path
        if folder != root:
            folder.rmdir()
    (root / LOCK).unlink(missing_ok=True)
    root.rmdir()
