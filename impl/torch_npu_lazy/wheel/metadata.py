"""Entry points that are not written down in any installed package: torch looks the backends of Dynamo up in the
packages' metadata, where a wheel without lazy initialisation has none."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path

from torch_npu_lazy import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping


class Announcement(Distribution):
    """The distribution that has them. backends: name -> "module:object"."""

    def __init__(self, backends: Mapping[str, str]) -> None:
        lines = ["[torch_dynamo_backends]", *(f"{name} = {value}" for name, value in backends.items())]
        self._files = {
            "METADATA": f"Metadata-Version: 2.1\nName: torch_npu_lazy\nVersion: {__version__}\n",
            "entry_points.txt": "\n".join(lines),
        }

    def read_text(self, filename: str) -> str | None:
        return self._files.get(filename)

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        return Path(__file__).parent.parent.parent / path
