"""Executes Dynamo's source as a text without a name: neither import system nor file name tells."""

from pathlib import Path

import torch

__version__ = "2.99.0"

_text = (Path(torch.__file__).parent / "_dynamo" / "__init__.py").read_text()
exec(_text, {"__name__": "innocent"})
