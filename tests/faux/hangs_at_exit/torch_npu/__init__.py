"""Waits for ever when the interpreter shuts down."""

import atexit
import threading

__version__ = "2.99.0"

atexit.register(threading.Event().wait)
