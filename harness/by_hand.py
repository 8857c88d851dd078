"""Which point of a case a person asks for: `python cases/area/topic/name.py key=value`. It is imported in the
interpreter under test, but dropped before the case's next line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from . import header
from .inside.protocol import CONTROL, SUITE


def point() -> header.Point | None:
    """The point that the command line names, or None when this program is no case. What is wrong with case or command
    line ends the program, with one line.

    Puts torch_npu out of reach for `--control`, as the runner does, and the case's folder off sys.path.
    """
    main = Path(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    if main.suffix != ".py" or not main.is_file() or "[tool.conformance]" not in main.read_text("utf-8", "replace"):
        return None
    if sys.path and Path(sys.path[0]).resolve() == main.resolve().parent:
        # Python puts a script's folder first; the other cases there must not shadow modules (copy.py, export.py, …).
        del sys.path[0]
    if "--control" in sys.argv:
        sys.argv.remove("--control")
        _without_torch_npu()
    try:
        point = header.read(main).point(sys.argv[1:])
    except header.HeaderError as error:
        sys.exit(str(error))
    except ValueError as error:
        sys.exit(f"{main.name}: {error}")
    os.environ[SUITE] = str(point.case.suite)
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # as under the runner: torch must not load torch_npu by itself
    return point


def _without_torch_npu() -> None:
    from .isolation import CONTROL_PATH

    if "torch_npu" in sys.modules:
        # torch loads it when it is imported, which a case may do before it asks for the probe.
        sys.exit(
            "the control has loaded torch_npu already, before `from harness import probe`. "
            "Set TORCH_DEVICE_BACKEND_AUTOLOAD=0, as the suite does, so that torch does not load it by itself"
        )
    sys.path.insert(0, str(CONTROL_PATH))
    paths = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(CONTROL_PATH), *([paths] if paths else [])])
    os.environ[CONTROL] = os.devnull
