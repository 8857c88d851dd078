"""How much an interpreter that imports torch spends on its search for garbage: left alone, a third of its processor
time, most of it in vain. `python collecting.py PROGRAM ARGUMENTS` runs a program with less of it."""

from __future__ import annotations

import atexit
import gc
import sys


def rarely() -> None:
    """Look for garbage a hundred times less often, and no more in the end. To be called before torch is imported.

    torch and Dynamo make a million objects that live to the end; looking through them over and over, and once more in
    the end, finds nothing. Who tests what is collected, or when, calls gc.collect() or leaves this out.
    """
    gc.set_threshold(100_000, 20, 100)
    atexit.register(gc.freeze)  # registered first, called last


if __name__ == "__main__":
    rarely()
    del sys.argv[0]
    sys.path[0] = sys.argv[0].rpartition("/")[0] or "."
    import runpy

    runpy.run_path(sys.argv[0], run_name="__main__")
