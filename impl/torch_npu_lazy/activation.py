"""Enabling for a whole environment: one .pth file, which Python executes in every process that it starts there."""

from __future__ import annotations

import os
import sys

NAME = "torch_npu_lazy.pth"

# Guarded, so that removing the package by hand does not make every start of Python complain.
_MARK = "# written by `python -m torch_npu_lazy enable`; `disable` removes it"
_LINE = f"import importlib.util; importlib.util.find_spec('torch_npu_lazy') and __import__('torch_npu_lazy')  {_MARK}\n"


class Unwritable(Exception):
    """The environment cannot be changed; str() is one line with cause and remedy."""


def _unwritable(error: OSError) -> Unwritable:
    return Unwritable(
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
    _refuse_foreign(file)
    try:
        with open(file, "w", encoding="utf-8") as out:  # noqa: PTH123
            out.write(_LINE)
    except OSError as error:
        raise _unwritable(error) from error
    return file


def disable(directory: str | None = None) -> str | None:
    """Undo `enable`. Returns the file removed, or None if there was none. Raises Unwritable."""
    file = path(directory)
    _refuse_foreign(file)
    try:
        os.remove(file)  # noqa: PTH107
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unwritable(error) from error
    return file


def _is_ours(file: str) -> bool:
    """Whether `enable` has written it."""
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123
            return os.path.isfile(file) and _MARK in opened.read(1 << 12)  # noqa: PTH113
    except OSError:
        return False


def _refuse_foreign(file: str) -> None:
    if os.path.lexists(file) and not _is_ours(file):
        raise Unwritable(f"{file} is there and was not written by `enable`; look at it, and move it away by hand")


def status(directory: str | None = None) -> dict[str, object]:
    """Whether the environment is enabled, by which file, and what is in force in this process."""
    file = path(directory)
    found: dict[str, object] = {"enabled": _is_ours(file), "file": file, "python": sys.executable}
    bootstrap = sys.modules.get("torch_npu_lazy.wheel.bootstrap")
    if bootstrap is None:
        return {
            **found,
            "profile": None,
            "refusal": f"switched off by TORCH_NPU_LAZY={os.environ.get('TORCH_NPU_LAZY')}",
        }
    return {**found, **bootstrap.state()}
