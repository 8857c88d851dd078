"""Lazy as it should be: loads no compiler, asks the device only for its number, sets up under a lock."""

import threading
from collections.abc import Callable

import faux_device

__version__ = "2.99.0"

faux_device.call("aclrtGetDeviceCount")
setups = 0
_lock = threading.Lock()
_done = False


def setup(window: Callable[[], None], blocked: Callable[[], None]) -> None:
    """Set up once. Calls `window` between look and work, `blocked` before it waits for another thread."""
    global setups, _done  # noqa: PLW0603
    if not _lock.acquire(blocking=False):
        blocked()
        _lock.acquire()
    try:
        if not _done:
            window()
            setups += 1
            _done = True
    finally:
        _lock.release()


def call_safely(function: Callable[[], None]) -> None:
    function()
