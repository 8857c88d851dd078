"""The operations of the NPU beyond Triton's language, forwarded to wherever the installed triton-ascend has them.

Looked up when used: this is imported before triton-ascend has put its own into triton.language.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        from triton import language  # pyright: ignore[reportMissingImports]
        from triton.language.extra.ascend import libdevice  # pyright: ignore[reportMissingImports]

        for home in (language, libdevice):
            if hasattr(home, name):
                return getattr(home, name)
    raise AttributeError(
        f"{__name__} has no {name}: this triton-ascend has no such operation, so the simulated NPU cannot offer it"
    )
