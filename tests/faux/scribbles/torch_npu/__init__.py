"""Writes a line of its own into every file that happens to be open."""

import contextlib
import os

__version__ = "2.99.0"

for _descriptor in range(3, 64):
    with contextlib.suppress(OSError):
        os.write(_descriptor, b"hello\n")
