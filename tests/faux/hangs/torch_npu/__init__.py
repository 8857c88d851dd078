"""Waits for ever in Python."""

import threading

__version__ = "2.99.0"


def wait_for_nobody() -> None:
    threading.Event().wait()


wait_for_nobody()
