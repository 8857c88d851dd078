"""Puts call sites into what NPU Inductor generates: all of it, or nothing."""

from __future__ import annotations

import functools

from torch_npu_lazy.core import events
from torch_npu_lazy.core.layers import has_layer

from .codegen import with_call_sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Operation = tuple[Any, str, Callable[[Any], Any]]
    """Owner, attribute, and what makes the new value of the old one."""


def install() -> None:
    """Have NPU Inductor write call sites from now on; nothing to do where it does. Raises what a part raises, and has
    taken the other parts back by then."""
    from torch._inductor import codecache
    from torch_npu._inductor.codegen import wrapper
    from torch_npu._inductor.runtime import triton_heuristics

    from . import sites

    generator = wrapper.NPUPythonWrapperCodeGen
    apply(
        (
            (generator, "generate_kernel_call", with_call_sites),
            (generator, "_generate_kernel_call_helper", with_call_sites),
            (codecache.FxGraphHashDetails, "__init__", in_the_key),
        )
    )
    sites.runs.add(triton_heuristics.NPUCachingAutotuner.run)
    events.record("patch", "planned fast launch", "NPU Inductor writes call sites")


def in_the_key(init: Callable[..., None]) -> Callable[..., None]:
    """Have Inductor's cache tell graphs with call sites from those without: one that was kept before the feature was
    switched on would have none."""

    @functools.wraps(init)
    def with_fast_launch(self: Any, *args: Any, **keywords: Any) -> None:
        init(self, *args, **keywords)
        self.npu_fast_launch = True

    return with_fast_launch


def apply(operations: tuple[Operation, ...]) -> None:
    """Do all, in order, but those that are done. If one fails, those done are undone in reverse order, and it is
    raised; an attribute that was only inherited is inherited again then."""
    undo: list[Callable[[], None]] = []
    try:
        for owner, name, make in operations:
            found = getattr(owner, name)
            if has_layer(found, make):
                continue
            own = name in vars(owner)
            setattr(owner, name, make(found))
            undo.append(
                functools.partial(setattr, owner, name, found) if own else functools.partial(delattr, owner, name)
            )
    except BaseException:
        for each in reversed(undo):
            each()
        raise
