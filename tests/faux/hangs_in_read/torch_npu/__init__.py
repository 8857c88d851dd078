"""Waits for ever in a system call."""

import os

__version__ = "2.99.0"


def read_from_nobody() -> None:
    reader, _writer = os.pipe()
    os.read(reader, 1)


read_from_nobody()
