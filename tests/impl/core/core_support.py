"""What the scenarios share: gates that force an interleaving, threads with a deadline, packages on disk, children.
Nothing sleeps; every wait has a deadline, and behind all of them stands the interpreter's own (see __main__ below)."""

from __future__ import annotations

import faulthandler
import importlib
import os
import select
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

DEADLINE = 20.0
"""Seconds for any one wait: generous, since it only ends what would hang."""


class Gate:
    """A place where a thread stops until it is let through."""

    def __init__(self) -> None:
        self._reached, self._open = threading.Event(), threading.Event()

    def stop_here(self) -> None:
        self._reached.set()
        if not self._open.wait(DEADLINE):
            raise AssertionError("nobody has opened the gate")

    def reached(self) -> None:
        if not self._reached.wait(DEADLINE):
            raise AssertionError("nobody has come to the gate")

    def open(self) -> None:
        self._open.set()


class Runner:
    """Threads whose errors and hangs are this thread's."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self.errors: list[BaseException] = []

    def start(self, function: Callable[..., object], *args: object) -> threading.Thread:
        def body() -> None:
            try:
                function(*args)
            except BaseException as error:
                self.errors.append(error)

        thread = threading.Thread(target=body, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def join(self, *, errors: bool = False) -> list[BaseException]:
        for thread in self._threads:
            thread.join(DEADLINE)
            if thread.is_alive():
                faulthandler.dump_traceback(all_threads=True)
                raise AssertionError("a thread hangs")
        if self.errors and not errors:
            raise self.errors[0]
        return self.errors


def until(condition: Callable[[], object]) -> None:
    """Give way to other threads until the condition holds. For states that nothing announces."""
    tick = threading.Event()
    for _ in range(int(DEADLINE / 0.002)):
        if condition():
            return
        tick.wait(0.002)
    raise AssertionError("the condition never held")


def blocked_on_import(thread: threading.Thread) -> bool:
    """Whether the thread waits for a module lock of the import system."""
    table = importlib._bootstrap._blocking_on  # type: ignore[attr-defined]
    return bool(table.get(thread.ident))


def modules(**bodies: str) -> Path:
    """Modules on sys.path by name; `a__b` is the module a.b, and a becomes a package."""
    root = Path(tempfile.mkdtemp(prefix="core-"))
    packages = {name.rpartition("__")[0] for name in bodies} - {""}
    for name, body in bodies.items():
        file = root / (name.replace("__", "/") + ("/__init__.py" if name in packages else ".py"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body)
    for package in packages:
        init = root / package.replace("__", "/") / "__init__.py"
        init.parent.mkdir(parents=True, exist_ok=True)
        init.touch()
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    return root


def in_child(function: Callable[[], object]) -> None:
    """Fork, run the function in the child, and fail with its stack if it fails or hangs."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 2)
        # Not faulthandler's timer: it is a thread that the child does not have, and setting a new one waits for it.
        faulthandler.register(signal.SIGALRM, file=2, chain=True)
        signal.alarm(int(DEADLINE / 2))
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(writer)
    said = b""
    while select.select([reader], [], [], DEADLINE)[0] and (part := os.read(reader, 65536)):
        said += part
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"the child ended with {status}:\n{said.decode()}"


def kinds(subject: str = "") -> list[str]:
    """The kinds of events on subjects that contain the text."""
    from torch_npu_lazy.core import events

    return [event.kind for event in events.so_far() if subject in event.subject]


if __name__ == "__main__":
    # python core_support.py MODULE SCENARIO SWITCH_INTERVAL: one scenario in this fresh interpreter.
    faulthandler.dump_traceback_later(2 * DEADLINE, exit=True)
    sys.modules["core_support"] = sys.modules["__main__"]
    if float(sys.argv[3]):
        sys.setswitchinterval(float(sys.argv[3]))
    getattr(importlib.import_module(sys.argv[1]), sys.argv[2])()
