"""The version of CANN, found without a walk through its whole installation, and not before it is asked for."""

from __future__ import annotations

import functools
import os
import pathlib

import torch
import torch_npu.utils.collect_env as this
from torch_npu_lazy.wheel import references

_search = this.get_cann_version


def get_cann_version() -> str:
    """What the installation in ASCEND_HOME_PATH says of itself; "not known" where it says nothing, or is not named.

    Raises RuntimeError if it cannot be read.
    """
    home = os.environ.get("ASCEND_HOME_PATH", "")
    # The wheel would search the working directory.
    return _version_of(home) if home else "not known"


@functools.lru_cache
def _version_of(home: str) -> str:
    root = pathlib.Path(home).resolve()
    this.check_directory_path_readable(str(root))
    # The installers put their notes into the directory itself or into those right below.
    for directory in (root, *sorted(each for each in root.iterdir() if each.is_dir() and not each.is_symlink())):
        for note in sorted(directory.glob("ascend_*_install.info")):
            for line in note.read_text().splitlines():
                if "version" in line:
                    return line.strip().split("=")[-1]
    return _search()


def _add_collect_env_methods() -> None:
    """Offer torch.version.cann."""
    references.lazily(torch.version.__dict__, {"cann": get_cann_version})
