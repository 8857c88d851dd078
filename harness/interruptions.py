"""Keeps Ctrl-C and its kin waiting while something must not be left half done: a terminal sends it to every process of
a run, people press it twice, and xdist sends SIGTERM after it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def held() -> Iterator[int]:
    """Signals that end a run wait until the end of the block, where the first of them takes effect.

    Gives a descriptor that becomes readable once one waits. What is ignored stays ignored. In a thread other than the
    main one nothing is held: Python takes no signal there.
    """
    reading, writing = os.pipe()
    received: list[int] = []

    def keep(number: int, _: object) -> None:
        received.append(number)
        os.write(writing, b"!")

    earlier = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    earlier[number] = signal.signal(number, keep)
        yield reading
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
        if received:
            signal.raise_signal(received[0])
