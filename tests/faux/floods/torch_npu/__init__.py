"""Writes a megabyte to each stream."""

import sys

__version__ = "2.99.0"

for _stream in (sys.stdout, sys.stderr):
    _stream.write("first line\n" + "x" * 1_000_000 + "\nlast line\n")
