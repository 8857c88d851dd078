"""Reads address 0 when the interpreter shuts down."""

import atexit
import ctypes

__version__ = "2.99.0"

atexit.register(ctypes.string_at, 0)
