"""The variables that steer the simulator, and the check of their values before a program starts.

The native library checks them again at its first call; here the message comes earlier and names the same remedy.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class SettingError(ValueError):
    """A variable has a value that cannot be understood, or a name that misspells one."""


@dataclass(frozen=True)
class Setting:
    """A variable, the values it takes and what it does."""

    name: str
    pattern: str
    remedy: str
    meaning: str


_COUNT = r"0*[1-9]\d{0,8}"
_FAULT = rf"[A-Za-z_]\w*:(\*|{_COUNT}):(error(={_COUNT})?|delay=\d{{1,9}})"

SETTINGS = (
    Setting(
        "SIMNPU_DEVICES",
        r"\d|[1-5]\d|6[0-4]",
        "give the number of devices, 0 to 64",
        "number of simulated devices (default 2)",
    ),
    Setting(
        "SIMNPU_MEMORY",
        r"0*[1-9](\d{0,14}|\d{0,11}K|\d{0,8}M|\d{0,5}G)",
        "give bytes per device, at most 999999G, with a suffix K, M or G if you like (512M)",
        "memory of each device (default 2G)",
    ),
    Setting("SIMNPU_LOG", r".+", "", 'a line per CANN call goes to this file, to "stderr", or is kept in "memory"'),
    Setting(
        "SIMNPU_FAULT",
        rf"{_FAULT}(,{_FAULT})*",
        "write CALL:N:error, CALL:N:error=CODE or CALL:N:delay=MILLISECONDS, with N a count from 1 or * for every call "
        "(aclrtMalloc:3:error=207001), numbers of at most nine digits; separate several with commas",
        "makes chosen calls fail or take longer",
    ),
    Setting(
        "SIMNPU_COMPILE_TIMEOUT",
        r"\d{1,9}",
        "give seconds, or 0 for no limit (60)",
        "how long the compile of a kernel, or of its launcher, may take (default 600)",
    ),
    Setting(
        "SIMNPU_HCCL_TIMEOUT",
        r"\d{1,9}(\.\d{1,9})?",
        "give seconds, or 0 for no limit (0.5)",
        "how long ranks wait for each other (default: HCCL_CONNECT_TIMEOUT, HCCL_EXEC_TIMEOUT)",
    ),
)


def check_settings(environment: Mapping[str, str]) -> None:
    """Raises SettingError for the first SIMNPU_* variable with a value that cannot be understood, or with a
    name that misspells one of them. Empty means unset."""
    names = [setting.name for setting in SETTINGS]
    for name in sorted(environment):
        if (
            name.startswith("SIMNPU_")
            and name not in names
            and (near := difflib.get_close_matches(name, names, 1, 0.85))
        ):
            raise SettingError(f"{name} is no variable of the simulator. Remedy: write {near[0]}, or unset it")
    for setting in SETTINGS:
        value = environment.get(setting.name, "")
        if value and not re.fullmatch(setting.pattern, value, re.ASCII):
            raise SettingError(f"{setting.name}={value} cannot be understood: {setting.remedy}")


def check_log_opens(environment: Mapping[str, str]) -> None:
    """Raises SettingError if no call could be written where SIMNPU_LOG says. Makes no file."""
    log = environment.get("SIMNPU_LOG", "")
    if log in ("", "stderr", "memory"):
        return
    path, remedy = Path(log), 'Remedy: give a path in a writable directory, "stderr" or "memory"'
    if path.is_dir():
        raise SettingError(f"SIMNPU_LOG={log} is a directory. {remedy}")
    if not path.parent.is_dir():
        raise SettingError(f"SIMNPU_LOG={log}: there is no directory {path.parent}. {remedy}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SettingError(f"SIMNPU_LOG={log} cannot be written. {remedy}")


def check_faults_exist(environment: Mapping[str, str], libraries: Path) -> None:
    """Raises SettingError if SIMNPU_FAULT names a call that the libraries in this directory do not have."""
    rules = environment.get("SIMNPU_FAULT", "")
    if not rules:
        return
    # Names of entry points stand in a library's symbol table as zero-terminated text.
    tables = [path.read_bytes() for path in sorted(libraries.glob("lib*.so"))]
    for rule in rules.split(","):
        name = rule.partition(":")[0]
        if not any(b"\0" + name.encode() + b"\0" in table for table in tables):
            raise SettingError(
                f"SIMNPU_FAULT={rule}: the simulator has no call {name}, so the rule would never apply. "
                "Remedy: check the spelling; simnpu/README.md lists the calls"
            )
