"""Calls user code under an except that swallows everything, failed checks too."""

import contextlib
from collections.abc import Callable

__version__ = "2.99.0"


def call_safely(function: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):
        function()
