"""Ends the process with code 0 in the middle of the case."""

import os

__version__ = "2.99.0"

os._exit(0)
