"""Planned fast launch: kernels that Inductor's generated Python launches reach torch_npu's task queue without their
autotuner, once that has settled.

Off unless TORCHINDUCTOR_NPU_FAST_LAUNCH says otherwise; nothing imports this package then. Generated code comes here by
`sys.modules`, so that a wrapper written by a process that had it on runs in one that has it off.

    codegen   writes call sites into generated wrappers
    sites     what a call site does: full entry, plan, or the launcher itself
    launcher  reads what a launcher does, and lays a plan out
    symbols   integers that remember how they were computed, for grids
    kinds     how an argument lies in the buffer
    patch     puts codegen in place, and takes it back when a part of that fails
    native/   the C++ part: converts, checks, packs and submits
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

VARIABLE = "TORCHINDUCTOR_NPU_FAST_LAUNCH"


def asked_for(value: str | None) -> bool:
    """Whether the variable's value means on."""
    return value is not None and value.strip().lower() in ("1", "true", "yes", "on", "y")


def status() -> dict[str, object]:
    """Whether it is asked for, and usable: "on", "extension" (the C++ part's file, None if it is yet to be built) and
    "refusal" (why there can be none, with the remedy, or None). Builds and loads nothing."""
    import os

    from . import native

    found: dict[str, object] = {"on": asked_for(os.environ.get(VARIABLE)), "extension": None, "refusal": None}
    try:
        path = native.kept()
        found["extension"] = str(path) if path.exists() else None
    except native.Unavailable as why:
        found["refusal"] = str(why)
    return found


def call_site(**known: Any) -> Callable[..., Any]:
    """What stands for `KERNEL.run` in generated code, called as `site(KERNEL, *arguments, stream=stream)`.

    known: what the code generator knows, see `codegen.metadata`.
    """
    from .sites import Site

    return Site.make(**known)
