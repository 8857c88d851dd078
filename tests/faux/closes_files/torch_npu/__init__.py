"""Closes every descriptor that it did not open, as daemons do."""

import os

__version__ = "2.99.0"

os.closerange(3, 256)
