"""The Inductor wrappers' methods accept every call that torch's own methods accept.

torch builds and calls these wrappers itself, and each torch release adds an argument. A replacement that repeats the
signature of last year's torch turns into a TypeError in the middle of a compile. torch's parameters
are listed before `import torch_npu`; each of them is then offered by position and by name.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { methods = ["inductor_call", "others"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import inspect

from harness import probe

import torch

METHODS = [
    (wrapper, method)
    for wrapper in ("_TorchCompileInductorWrapper", "_TorchCompileAOTInductorWrapper")
    for method in ("__init__", "__call__", "apply_options", "apply_mode", "get_compiler_config", "reset")
    if (probe.param("methods") == "inductor_call")
    == ((wrapper, method) == ("_TorchCompileInductorWrapper", "__call__"))
]


def look_up(wrapper, method):
    return getattr(getattr(torch, wrapper), method)


plain = {names: list(inspect.signature(look_up(*names)).parameters.values()) for names in METHODS}
import torch_npu


def refusals(names):
    replaced = inspect.signature(look_up(*names), follow_wrapped=False)
    by_position = [p.name for p in plain[names] if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    only_named = [p.name for p in plain[names] if p.kind is inspect.Parameter.KEYWORD_ONLY]
    calls = {
        "by position": (by_position, only_named),
        "by name": (by_position[:1], by_position[1:] + only_named),  # self has no name for the caller
    }

    def refusal(positional, named):
        try:
            replaced.bind(*positional, **dict.fromkeys(named, 0))
        except TypeError as error:
            return str(error)
        return None

    found = {
        f"{'.'.join(names)}, {positional[1:] + named} {manner}": refusal(positional, named)
        for manner, (positional, named) in calls.items()
    }
    return {call: why for call, why in found.items() if why is not None}


refused = {call: why for names in METHODS for call, why in refusals(names).items()}
probe.equal(refused, {}, "calls with torch's own arguments that are refused")
