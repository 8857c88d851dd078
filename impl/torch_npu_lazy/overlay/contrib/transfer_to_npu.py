"""The end of the transfer: the real modules take the place of what the body met, and what it has replaced in the
compiler is replaced there as soon as there is a compiler.
"""

from __future__ import annotations

import functools as _functools
import sys as _sys

import torch_npu.contrib.transfer_to_npu as _this

from torch_npu_lazy.core.trigger import when_imported as _when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def _assign(module: ModuleType, *, values: list[tuple[str, str, object]]) -> None:
    for path, name, value in values:
        owner = module
        for part in filter(None, path.split(".")):
            owner = getattr(owner, part)
        setattr(owner, name, value)


def _assign_when_imported() -> None:
    by_module: dict[str, list[tuple[str, str, object]]] = {}
    for path, name, value in _this._assigned:
        # The body of a release that is not lazy imports nothing: it reaches into modules right below a compiler.
        below = ".".join(path.split(".")[:3])
        module = max((each for each in _this._promised if f"{path}.".startswith(f"{each}.")), key=len, default=below)
        by_module.setdefault(module, []).append((path[len(module) + 1 :], name, value))
    for module, values in by_module.items():
        assign = _functools.partial(_assign, values=values)
        _when_imported(module, assign, again=assign)


def _know_functions(trace_rules: ModuleType) -> None:
    """Dynamo knows torch's functions by identity, from a table that it keeps: the replaced ones are to be in it. Those
    that are the NPU's now have the rules of the NPU's names; two rules for one function are an error."""
    for rules in trace_rules.torch_name_rule_map:
        for name in [each for each in rules if each.startswith("torch.cuda.")]:
            if str(getattr(_reached(name), "__module__", "")).startswith("torch_npu."):
                del rules[name]
    trace_rules.clear_lru_cache()


def _reached(path: str) -> object:
    reached: object = _this._torch
    for part in path.split(".")[1:]:
        reached = getattr(reached, part, None)
    return reached


def _replace_has_triton() -> None:
    """Everywhere in torch, not in four modules only: who imported the function before has the old one."""
    has_triton = _this._torch.utils._triton.has_triton
    for name, module in list(_sys.modules.items()):
        if name.startswith("torch.") and callable(getattr(module, "__dict__", {}).get("has_triton")):
            module.has_triton = has_triton  # type: ignore[attr-defined]


_this._end()
_assign_when_imported()
_when_imported("torch._dynamo.trace_rules", _know_functions)
_replace_has_triton()
