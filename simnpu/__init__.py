"""The simulated NPU: CANN's runtime and operators on host memory, so that unmodified torch_npu wheels run anywhere.

`environ()` gives the environment of a child process that shall run on it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

version = "0.1.0"

__all__ = ["build_id", "environ", "version"]

# What these need is imported when they are called: a program on the simulator imports this package for simnpu.calls
# alone, and must not find modules loaded that it did not ask for.


def build_id() -> str:
    """Names what the simulator is made of: versions of it, torch, torch_npu; its source. Raises BuildError."""
    from simnpu.build import build_id as ask

    return ask()


def environ(
    base: Mapping[str, str] | None = None,
    *,
    devices: int | None = None,
    memory: int | str | None = None,
    log: str | None = None,
    fault: str | None = None,
    visible: str | None = None,
) -> dict[str, str]:
    """The environment for a child process on the simulated NPU: `base` (default: this process's) and what it needs.

    devices: number of devices; memory: bytes per device, or text with a suffix K, M, G; log: path, "stderr" or
    "memory"; fault: see SIMNPU_FAULT; visible: ASCEND_RT_VISIBLE_DEVICES. What is None is left as `base` has it.
    Builds the simulator first if needed. Raises simnpu.build.BuildError, and simnpu.settings.SettingError for a value
    that cannot be understood.

    With triton-ascend installed, and what its kernels are compiled with, PATH and PYTHONPATH get what it needs, and the
    kernel compiler is built first if needed.
    """
    from simnpu.build import build
    from simnpu.settings import check_settings
    from simnpu.toolchain.surroundings import activate, put_first

    environment = dict(os.environ if base is None else base)
    wanted = {
        "SIMNPU_DEVICES": devices,
        "SIMNPU_MEMORY": memory,
        "SIMNPU_LOG": log,
        "SIMNPU_FAULT": fault,
        "ASCEND_RT_VISIBLE_DEVICES": visible,
    }
    environment.update({name: str(value) for name, value in wanted.items() if value is not None})
    check_settings(environment)
    libraries = build()
    home = libraries.parent / "cann"
    environment["LD_LIBRARY_PATH"] = put_first(str(libraries), environment.get("LD_LIBRARY_PATH", ""))
    environment["ASCEND_HOME_PATH"] = str(home)
    environment["ASCEND_OPP_PATH"] = str(home / "opp")
    activate(environment)
    return environment
