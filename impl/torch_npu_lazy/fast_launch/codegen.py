"""Call sites in generated wrappers: where a wrapper would launch a kernel by its autotuner, it calls one instead.

What a release's own generator writes is taken as it is, and one line of it replaced: `KERNEL.run(ARGUMENTS,
stream=STREAM)`. So whatever a release passes to its generator, it passes on. A line of another form stays.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import weakref

from .kinds import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

HEADER = """\
import sys as _npu_sys
_npu_call_site = getattr(_npu_sys.modules.get("torch_npu_lazy.fast_launch"), "call_site", None) or (
    lambda **_: lambda kernel, *args, **keywords: kernel.run(*args, **keywords)
)
"""
"""Taken from what is loaded: a process without planned fast launch runs the same wrapper."""
_written: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
"""Call sites so far, by the header that they are defined in: wrappers may share one."""


def with_call_sites(generate: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the wrapper's generator that writes a launch, so that it writes a call site."""

    @functools.wraps(generate)
    def write(self: Any, kernel_name: str, call_args: Sequence[Any], *args: Any, **keywords: Any) -> Any:
        if not _wanted():
            return generate(self, kernel_name, call_args, *args, **keywords)
        # Torch itself puts another one on the wrapper while it writes the body.
        own = vars(self).get("writeline")
        plain = self.writeline

        def writeline(line: Any) -> Any:
            return plain(_replaced(self, line, kernel_name, call_args, keywords.get("triton_meta")))

        self.writeline = writeline
        try:
            return generate(self, kernel_name, call_args, *args, **keywords)
        finally:
            if own is None:
                del self.writeline
            else:
                self.writeline = own

    return write


def _wanted() -> bool:
    from torch._inductor import config
    from torch._inductor.virtualized import V

    return not (V.graph.cpp_wrapper or config.triton.autotune_at_compile_time)


def _replaced(wrapper: Any, line: Any, kernel: str, call_args: Sequence[Any], triton_meta: Any) -> Any:
    start = f"{kernel}.run("
    if not isinstance(line, str) or not line.lstrip().startswith(start) or not _launches(line.strip(), kernel):
        return line
    index = _written.get(wrapper.header, 0)
    if index == 0:
        wrapper.header.splice(HEADER)
    _written[wrapper.header] = index + 1
    site = f"_npu_call_{index}"
    known = metadata(kernel, call_args, triton_meta, index)
    wrapper.header.writeline(
        f"{site} = _npu_call_site({', '.join(f'{name}={value!r}' for name, value in known.items())})"
    )
    return line.replace(start, f"{site}({kernel}, ", 1)


def _launches(line: str, kernel: str) -> bool:
    """Whether a line is one call of the kernel's `run` with no keyword but the stream."""
    try:
        (statement,) = ast.parse(line).body
    except (SyntaxError, ValueError):
        return False
    call = getattr(statement, "value", None)
    return (
        isinstance(statement, ast.Expr)
        and isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "run"
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == kernel
        and [keyword.arg for keyword in call.keywords] == ["stream"]
    )


def metadata(kernel: str, call_args: Sequence[Any], triton_meta: Any, index: int) -> dict[str, Any]:
    """What is known of a call site when it is written: `id`, `kernel`, and the arguments' `kinds`, or None where the
    signature is not known or has a type that cannot be planned."""
    from torch._inductor.virtualized import V

    graph = getattr(V.graph, "graph_id", None)
    kinds = _kinds(call_args, triton_meta)
    about = json.dumps([kernel, [str(each) for each in call_args], kinds])
    name = graph if graph is not None else getattr(V.graph, "name", None) or "graph"
    return {
        "id": f"{name}:{index}:{hashlib.sha256(about.encode()).hexdigest()[:8]}",
        "kernel": kernel,
        "kinds": kinds,
    }


def _kinds(call_args: Sequence[Any], triton_meta: Any) -> tuple[str, ...] | None:
    meta = triton_meta or {}
    signature, constants = meta.get("signature") or {}, meta.get("constants") or {}
    places = {place for key in constants for place in (key if isinstance(key, tuple) else (key,))}
    given = [
        each
        for position, (name, each) in enumerate(signature.items())
        if each != "constexpr" and name not in places and position not in places
    ]
    if len(given) != len(call_args):
        given = list(signature.values())
    kinds = [kind_of(each) for each in given]
    if len(kinds) != len(call_args) or None in kinds:
        return None
    return tuple(kinds)  # type: ignore[arg-type]
