"""The lever by which a case says which Triton there is: none, community Triton, or what is installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..protocol import TRITON
from ._session import ProbeError

CHOICE = Path(__file__).parent.parent / "triton_choice"


def triton(which: str) -> None:
    """Make this interpreter, and every one that it starts from now on, see another Triton than the installed one.

    "absent": none, as where triton-ascend was never installed: find_spec gives None, the import raises
    ModuleNotFoundError, metadata names no distribution. "community": a fake of community Triton, which shares the
    import name with triton-ascend and knows no NPU. "installed": what there is, unchanged. Asked for before anything
    has imported triton; raises ProbeError otherwise, and for another word.
    """
    if which not in {"absent", "community", "installed"}:
        raise ProbeError(f"there is no Triton {which!r}; known are absent, community and installed")
    if os.environ.get(TRITON):
        raise ProbeError("which Triton there is can be said once")
    if "triton" in sys.modules:
        raise ProbeError("triton is loaded already; say which there is before anything imports it")
    if which == "installed":
        return
    places = [str(CHOICE / "hide"), *([str(CHOICE / "community")] if which == "community" else [])]
    # For interpreters that the case starts.
    paths = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*places, *([paths] if paths else [])])
    os.environ[TRITON] = which
    # For this one: where PYTHONPATH would have put it.
    sys.path[:0] = places[1:]
    hide: dict[str, object] = {"__name__": "harness.triton_choice", "__file__": f"{places[0]}/sitecustomize.py"}
    exec(compile(Path(str(hide["__file__"])).read_bytes(), str(hide["__file__"]), "exec"), hide)
    hide["hide"](which)  # type: ignore[operator]
