"""All that a case may use of the harness: parameters, checks, and the evidence of what the judged package did (its
modules, libraries, device calls). A failed check is recorded when it happens, so nobody can swallow it."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from .. import jitter as _jitter
from ..protocol import CONTROL
from . import _suite, libraries, modules
from ._checks import check, close, equal, raises, same
from ._device import device_calls, device_untouched
from ._each import each
from ._forked import forked
from ._nested import Completed, python
from ._session import CheckFailed, ProbeError, Unsupported, session
from ._threads import JITTER, Gate, Thread, gate, thread
from ._triton import triton

COMPILERS = (
    "torch._dynamo",
    "torch._inductor",
    "torch_npu._inductor",
    "triton",
    "torch_npu.npu._graph_tree",
    "torch_npu.dynamo.torchair",
    "torch_npu.dynamo.npugraph_ex",
)
"""Names of the modules that must stay out of an interpreter that has not asked for a compiler."""

__all__ = [
    "COMPILERS",
    "CheckFailed",
    "Completed",
    "Gate",
    "ProbeError",
    "Thread",
    "Unsupported",
    "check",
    "close",
    "compilers_absent",
    "control",
    "device_calls",
    "device_untouched",
    "each",
    "equal",
    "forked",
    "gate",
    "jitter",
    "libraries",
    "modules",
    "note",
    "param",
    "python",
    "raises",
    "same",
    "thread",
    "triton",
    "unsupported",
]


def param(name: str) -> Any:
    """The value of a matrix parameter at this point. Raises ProbeError for a name that is not in the matrix."""
    return session().param(name)


def note(key: str, value: Any) -> None:
    """Keep a fact in the report; the last one of a key wins. Raises ProbeError for a value that is not JSON-able."""
    session().note(key, value)


def unsupported(reason: str) -> NoReturn:
    """End the case: it cannot be judged here, for this reason. Raises Unsupported, which `except Exception` lets by."""
    session().unsupported(reason)
    raise Unsupported(reason)


def jitter() -> None:
    """A place where a soak may hold this thread up for some milliseconds. Without --soak it does nothing. Gates and the
    beginning of a thread have it built in."""
    caller = sys._getframe(1)
    _jitter.delay(f"{caller.f_code.co_name}:{caller.f_lineno}", *JITTER)


def compilers_absent() -> None:
    """Check that nothing of COMPILERS was ever loaded in this interpreter. Raises CheckFailed."""
    modules.absent(*COMPILERS)


# Opens the session (and, by hand, the import recorder) at the case's first line.
session()
_suite.bind()

control: bool = CONTROL in os.environ
"""Whether this is a control: the same program with plain PyTorch, which must leave torch_npu out. A case whose header
asks for controls imports torch_npu, and does what only an NPU can, `if not probe.control`."""
