"""A further fresh interpreter inside a case, under the same subject and device, for rules about child processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from ..protocol import PREAMBLE
from ._session import session

TAIL = 4000


@dataclass(frozen=True)
class Completed:
    """How a nested interpreter ended."""

    stdout: str
    stderr: str
    """Both in full, UTF-8, with backslash escapes for other bytes."""
    returncode: int
    """Its exit code; negative for a signal."""


def python(
    code: str,
    *args: str,
    env: Mapping[str, str | None] | None = None,
    timeout: float | None = None,
    check: bool = True,
) -> Completed:
    """Run `python -c code args…` in a fresh interpreter with this subject and device, and wait for its end. `env` adds
    to this process's environment, a None removes. `timeout` is in seconds; without one the case's own applies. Raises
    CheckFailed when it is overrun and, with `check`, for an exit code other than 0.

    `code` must not start with a __future__ import when the subject is one that is imported first.
    """
    environment = dict(os.environ)
    for name, value in (env or {}).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    preamble = os.environ.get(PREAMBLE)
    program = f"import {preamble}\n{code}" if preamble else code
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    try:
        done = subprocess.run(
            [sys.executable, *safe, "-c", program, *args],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as expired:
        session().failed(
            f"the nested interpreter ends within {timeout:g} s",
            expected="an end",
            found="it still ran, and was killed",
            facts={"stdout": _tail(expired.stdout), "stderr": _tail(expired.stderr)},
        )
    completed = Completed(_text(done.stdout), _text(done.stderr), done.returncode)
    if check and completed.returncode != 0:
        session().failed(
            "the nested interpreter ends well",
            expected="exit code 0",
            found=f"exit code {completed.returncode}",
            facts={"stdout": completed.stdout[-TAIL:], "stderr": completed.stderr[-TAIL:]},
        )
    return completed


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "backslashreplace")


def _tail(data: bytes | None) -> str:
    return _text(data)[-TAIL:]
