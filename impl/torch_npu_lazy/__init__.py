"""The reference implementation of lazy initialisation for torch_npu.

So far this holds the mechanisms alone (`torch_npu_lazy.core`); importing it changes nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"
