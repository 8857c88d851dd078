"""The NPU's trace rules, in Dynamo's table once each however often setup is begun: a table filled twice disagrees with
itself when one copy is changed."""

from __future__ import annotations

import torch._dynamo.trace_rules as rules
import torch_npu.dynamo.trace_rule as this

from torch_npu_lazy import core, wheel

_append_rules = this._patch_npu_trace_rules


def _patch_npu_trace_rules() -> None:
    try:
        _append_rules()
    finally:
        table = rules.torch_name_rule_map
        # By identity, and in one go: another thread may be tracing.
        table[:] = list({id(each): each for each in table}.values())
        # What another thread has looked up meanwhile is remembered without them.
        rules.clear_lru_cache()
    _leave_machinery_out()


def _leave_machinery_out() -> None:
    """Have Dynamo run it as it is. It would take apart how a part is loaded, if a compiled program is the first to use
    that, and warn of what it finds."""
    for package in (core, wheel):
        if not any(f"{package.__path__[0]}/".startswith(each) for each in rules.SKIP_DIRS):
            rules.add(package.__name__)
