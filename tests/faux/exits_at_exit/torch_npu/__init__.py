"""Ends the process hard, with a code, when the interpreter shuts down."""

import atexit
import os

__version__ = "2.99.0"

atexit.register(os._exit, 3)
