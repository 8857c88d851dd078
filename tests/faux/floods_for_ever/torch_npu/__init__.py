"""Writes without end."""

import os

__version__ = "2.99.0"

while True:
    os.write(1, b"x" * 65536)
