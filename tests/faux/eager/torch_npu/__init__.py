"""Loads Dynamo when it is imported."""

import torch._dynamo  # noqa: F401

__version__ = "2.99.0"
