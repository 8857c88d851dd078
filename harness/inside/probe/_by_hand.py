"""The session of a case that a person runs, `python cases/area/topic/name.py key=value`: says each check on the
terminal and sets the exit code."""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import re
import sys
from typing import Any

from ..protocol import POINT, TIMEOUT
from ._session import Session, describe
from ._session import begin as _begin


def begin(title: str, params: dict[str, Any], timeout: float) -> None:
    """Open the session at the point that has `params`; `timeout` (in seconds) is the case's own."""
    faulthandler.enable()
    os.environ[POINT] = json.dumps(params)
    os.environ.setdefault(TIMEOUT, str(timeout))
    session = HandSession(params)
    _begin(session)
    atexit.register(session.close)
    print(title, flush=True)


class HandSession(Session):
    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__(params)
        self._ended = False

    def emit(self, entry: dict[str, Any]) -> None:
        kind = entry["kind"]
        if kind == "check":
            print(f"ok    {entry['message']}" if entry["ok"] else f"FAIL  {describe(entry)}", flush=True)
        elif kind == "note":
            print(f"note  {entry['key']} = {entry['value']!r}", flush=True)

    def unsupported(self, reason: str) -> None:
        self._ended = True
        sys.exit(f"unsupported: {reason}")

    def close(self) -> None:
        """At exit: a failed check that somebody swallowed, or no check at all, must still give exit code 1."""
        if not self.owner or self._ended:
            return
        print(f"{self.checks} checks, {self.failures} failed", flush=True)
        if (library := _missing_library()) is not None:
            print(
                f"{library} is not in reach: without a device runtime there is no NPU. On the simulated one: python -m "
                f"simnpu run -- python {' '.join(sys.argv)}. On a real one: source CANN's set_env.sh first.",
                file=sys.stderr,
            )
        if self.unjoined and not self.failures:
            print(f"never joined: {', '.join(thread.name for thread in self.unjoined)}", file=sys.stderr)
        if self.failures or self.unjoined or not self.checks:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)


def _missing_library() -> str | None:
    """The shared library for want of which the program has ended, if it has."""
    error: BaseException | None = getattr(sys, "last_value", None)
    while error is not None:
        if found := re.search(r"(lib\w+\.so[.\d]*): cannot open shared object file", str(error)):
            return found[1]
        error = error.__cause__ or error.__context__
    return None
