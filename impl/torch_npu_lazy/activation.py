"""Enabling for a whole environment: one .pth file, which Python executes in every process that it starts there."""

from __future__ import annotations

import os
import sys

NAME = "torch_npu_lazy.pth"

# Guarded, so that removing the package by hand does not make every start of Python complain.
_LINE = (
    "import importlib.util; importlib.util.find_spec('torch_npu_lazy') and __import__('torch_npu_lazy')  "
    "# written by `python -m torch_npu_lazy enable`; `disable` removes it\n"
)


class Unwritable(Exception):
    """The environment cannot be changed; str() is one line with cause and remedy."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"cannot change {error.filename}: {error.strerror}; do it as the user who owns this environment, or make a "
            "virtual environment of your own"
        )


def path(directory: str | None = None) -> str:
    """Where the file is, or would be: in `directory`, by default this interpreter's site-packages."""
    if directory is None:
        from sysconfig import get_path

        directory = get_path("purelib")
    return os.path.join(directory, NAME)  # noqa: PTH118


def enable(directory: str | None = None) -> str:
    """Activate torch_npu_lazy in every process of the environment. Returns the file written. Raises Unwritable."""
    file = path(directory)
    try:
        with open(file, "w", encoding="utf-8") as out:  # noqa: PTH123
            out.write(_LINE)
    except OSError as error:
        raise Unwritable(error) from error
    return file


def disable(directory: str | None = None) -> str | None:
    """Undo `enable`. Returns the file removed, or None if there was none. Raises Unwritable."""
    file = path(directory)
    try:
        os.remove(file)  # noqa: PTH107
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unwritable(error) from error
    return file


def status(directory: str | None = None) -> dict[str, object]:
    """Whether the environment is enabled, by which file, and what is in force in this process."""
    file = path(directory)
    found: dict[str, object] = {"enabled": os.path.exists(file), "file": file, "python": sys.executable}  # noqa: PTH110
    bootstrap = sys.modules.get("torch_npu_lazy.wheel.bootstrap")
    if bootstrap is None:
        return {
            **found,
            "profile": None,
            "refusal": f"switched off by TORCH_NPU_LAZY={os.environ.get('TORCH_NPU_LAZY')}",
        }
    return {**found, **bootstrap.state()}
