"""What can be had of torch_npu after its import, as JSON: run once with the wheel alone, once with torch_npu_lazy.

first: names of modules below torch_npu by module, as they are right after the import. then: what in torch's modules comes
from torch_npu, once all modules that the wheel alone loads are loaded.
"""

from __future__ import annotations

import importlib
import inspect
import json
import operator
import os
import sys

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
if sys.argv[1] == "lazy":
    import torch_npu_lazy  # noqa: F401
import torch
import torch_npu

loaded = sorted(name for name in sys.modules if name.startswith(("torch.", "torch_npu.")))
wanted = json.loads(sys.stdin.read()) if sys.argv[1] == "lazy" else {}
lost = []
for module, names in wanted.get("names", {}).items():
    path = module.partition(".")[2]
    try:
        value = (
            operator.attrgetter(path)(torch_npu)
            if path and path in wanted["reachable"]
            else importlib.import_module(module)
        )
    except AttributeError as error:
        lost.append(f"{module}: {error}")
        continue
    lost += [f"{module}.{name}" for name in names if not hasattr(value, name)]


def reachable(path: str) -> bool:
    try:
        return inspect.ismodule(operator.attrgetter(path)(torch_npu))
    except AttributeError:
        return False


names, paths = {}, []
for name in loaded if not wanted else ():
    if name.startswith("torch_npu."):
        names[name] = (
            sorted(key for key in vars(sys.modules[name]) if not key.startswith("__"))
            if inspect.ismodule(sys.modules[name])
            else []
        )
        if reachable(name.partition(".")[2]):
            paths.append(name.partition(".")[2])

for name in wanted.get("loaded", ()):
    importlib.import_module(name)
theirs = {}
for name in sorted(sys.modules):
    module = sys.modules[name]
    if not name.startswith("torch.") or name.startswith("torch.npu") or not inspect.ismodule(module):
        continue
    owners = [(name, module)] + [
        (f"{name}.{key}", value)
        for key, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == name
    ]
    for owner, value in owners:
        for key, each in list(vars(value).items()):
            if isinstance(each, staticmethod | classmethod):
                each = each.__func__
            if not callable(each):
                continue
            try:
                home = each.__module__
            except Exception:
                continue
            if isinstance(home, str) and home.startswith("torch_npu"):
                theirs[f"{owner}.{key}"] = f"{home}.{getattr(each, '__qualname__', '?')}"
print(json.dumps({"names": names, "reachable": paths, "loaded": loaded, "theirs": theirs, "lost": lost}))
