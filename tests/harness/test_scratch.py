"""Scratch directories go, whatever is in them; those of others are not touched and not waited for."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import Run

from harness import scratch

DEPTH = 3000


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(scratch, "place", lambda: tmp_path)
    yield tmp_path
    scratch.sweep()
    for left in tmp_path.glob(".[0-9]*"):
        left.rmdir()


def dig(directory: Path, depth: int) -> None:
    """That many directories in each other, deeper than any path can say."""
    here = os.open(directory, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("nested", dir_fd=here)
        below = os.open("nested", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_it_goes_however_deep_it_is(place: Path) -> None:
    with scratch.Scratch(["work"]) as made:
        dig(made.path / "work", DEPTH)
        (made.path / "work/link").symlink_to(place)
    assert list(place.iterdir()) == []


def test_a_case_that_digs_or_removes_its_directory_is_told_of(run: Run) -> None:
    deep = run(
        f"import os\n\nfor _ in range({DEPTH}):\n    os.mkdir('d')\n    os.chdir('d')\nprobe.check(True, 'deep')"
    )
    assert deep["outcome"] == "pass"
    gone = "import os, shutil\n\nshutil.rmtree(os.path.dirname(os.environ['HOME']))\n"
    result = run(f"{gone}probe.check(True, 'it holds')")
    assert (result["outcome"], result["checks"]) == ("harness-error", 1)
    assert "the case removed its scratch directory" in result["reason"]
    result = run(f"{gone}print('last words')\nprobe.check(False, 'it fails')")
    assert (result["outcome"], result["failure"]["message"]) == ("fail", "it fails")
    assert "last words" in result["stdout"]


def test_only_directories_of_our_own_are_swept(place: Path) -> None:
    def make(name: str) -> Path:
        made = place / f"{scratch.PREFIX}{name}"
        made.mkdir()
        return made

    os.mkfifo(make("fifo") / scratch.LOCK)  # a sweep that opened it would wait for ever
    make("empty")
    (make("linked") / scratch.LOCK).symlink_to(__file__)
    (make("folder") / scratch.LOCK).mkdir()
    (place / f"{scratch.PREFIX}link").symlink_to(make("target"))
    os.mkfifo(place / f"{scratch.PREFIX}pipe")
    others = set(place.iterdir())
    if os.getuid() == 0:
        foreign = make("foreign")
        (foreign / scratch.LOCK).touch()
        os.chown(foreign, 12345, 12345)
        others.add(foreign)
    (make("left") / scratch.LOCK).touch()
    used = scratch.Scratch([])
    scratch.sweep()
    assert set(place.iterdir()) == others | {used.path}
    used.remove()


def test_sweeps_at_once_leave_nothing_and_harm_nobody(place: Path) -> None:
    start = threading.Barrier(4)
    seen: list[bool] = []

    def use() -> None:
        start.wait()
        for _ in range(100):
            with scratch.Scratch(["work"]) as made:
                scratch.sweep()
                seen.append((made.path / "work").is_dir())

    def leave() -> None:
        start.wait()
        for number in range(100):
            made = place / f"{scratch.PREFIX}{threading.get_ident()}-{number}"
            made.mkdir()
            with (made / scratch.LOCK).open("wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
            scratch.sweep()

    threads = [threading.Thread(target=task) for task in (use, use, leave, leave)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scratch.sweep()
    assert seen == [True] * 200
    assert list(place.iterdir()) == []
