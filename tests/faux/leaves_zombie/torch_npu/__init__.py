"""Forks a child and never asks what became of it."""

import os

__version__ = "2.99.0"

if os.fork() == 0:
    os._exit(0)
