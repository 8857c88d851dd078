"""Maps the operator library behind everybody's back: sys.modules and the call log look innocent."""

import mmap
from pathlib import Path

__version__ = "2.99.0"

with (Path(__file__).parent / "lib" / "libopapi.so").open("rb") as _file:
    _mapping = mmap.mmap(_file.fileno(), 0, prot=mmap.PROT_READ)
