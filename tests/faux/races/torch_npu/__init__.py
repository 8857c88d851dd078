"""Looks at its flag and acts on it without a lock in between."""

from collections.abc import Callable

__version__ = "2.99.0"

setups = 0
_done = False


def setup(window: Callable[[], None], blocked: Callable[[], None]) -> None:  # noqa: ARG001 - nobody ever waits here
    """Set up, once if nobody comes between. Calls `window` between the look at the flag and the work."""
    global setups, _done  # noqa: PLW0603
    if not _done:
        window()
        setups += 1
        _done = True
