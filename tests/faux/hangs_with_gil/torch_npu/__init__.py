"""Waits for ever in C without giving the interpreter's lock away: no Python code can run, no handler either."""

import ctypes

__version__ = "2.99.0"


def sleep_in_c() -> None:
    ctypes.PyDLL(None).sleep(3600)


while True:
    sleep_in_c()
