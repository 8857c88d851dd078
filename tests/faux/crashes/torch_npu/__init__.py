"""Reads address 0."""

import ctypes

__version__ = "2.99.0"


def read_null() -> None:
    ctypes.string_at(0)


read_null()
