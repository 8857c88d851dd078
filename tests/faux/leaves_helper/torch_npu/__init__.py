"""Leaves a helper process that ends by itself once this process is gone, as pools of workers do."""

import os

__version__ = "2.99.0"

_reader, _writer = os.pipe()
if os.fork() == 0:
    os.close(_writer)
    os.read(_reader, 1)
    os._exit(0)
os.close(_reader)
