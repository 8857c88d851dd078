"""The Inductor wrappers' methods accept every call that torch's own methods accept.

torch builds and calls these wrappers itself, and each torch release adds an argument. A replacement that repeats the
signature of last year's torch turns into a TypeError in the middle of a compile. The control lists torch's parameters
in an interpreter without torch_npu; each of them is then offered by position and by name.
"""

# /// script
# [tool.conformance]
# rule = "import/wrapper/1"
# level = "must"
# matrix = { wrapper = ["_TorchCompileInductorWrapper", "_TorchCompileAOTInductorWrapper"], method = [
#   "__init__", "__call__", "apply_options", "apply_mode", "get_compiler_config", "reset",
# ] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import inspect
import json

from harness import probe

CONTROL = """
import inspect, json, sys, torch
method = getattr(getattr(torch, sys.argv[1]), sys.argv[2])
print(json.dumps([[p.name, p.kind.name] for p in inspect.signature(method).parameters.values()]))
"""

wrapper, method = probe.param("wrapper"), probe.param("method")
output = probe.python(CONTROL, wrapper, method, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}).stdout
parameters = json.loads(output.splitlines()[-1])

import torch
import torch_npu

replaced = inspect.signature(getattr(getattr(torch, wrapper), method), follow_wrapped=False)
by_position = [name for name, kind in parameters if kind == "POSITIONAL_OR_KEYWORD"]
only_named = [name for name, kind in parameters if kind == "KEYWORD_ONLY"]
calls = {
    "by position": (by_position, only_named),
    "by name": (by_position[:1], by_position[1:] + only_named),  # self has no name for the caller
}
for manner, (positional, named) in calls.items():
    try:
        replaced.bind(*positional, **dict.fromkeys(named, 0))
        refusal = None
    except TypeError as error:
        refusal = str(error)
    probe.equal(refusal, None, f"refusal of torch's own arguments {positional[1:] + named} {manner}")
