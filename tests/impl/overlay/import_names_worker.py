"""What can be had of torch_npu after its import, as JSON: run with the wheel alone ("stock"), then with torch_npu_lazy
("lazy", which reads the first one's answer) to see what of that is missing; "look" does nothing but look at modules.
"""

from __future__ import annotations

import _imp
import contextlib
import copy
import importlib
import inspect
import json
import operator
import os
import pydoc
import sys
import typing
import warnings
from typing import Any
from unittest import mock

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
warnings.simplefilter("ignore")
LAZY = sys.argv[1] != "stock"
COMPILERS = ("torch._dynamo", "torch._inductor", "triton")
IN_LOOKUPS: list[str] = []
"""What is imported while a finder looks another module up, which holds a lock of the whole process."""
if LAZY:
    sys.addaudithook(lambda event, given: event == "import" and _imp.lock_held() and IN_LOOKUPS.append(given[0]))
    import torch_npu_lazy  # noqa: F401
import torch_npu  # noqa: E402


def _at(path: str) -> Any:
    return operator.attrgetter(path)(torch_npu)


def names_by_module() -> dict[str, list[str]]:
    """By the path of each module below torch_npu that is an attribute all the way, the names in it."""
    found = {}
    for name, module in list(sys.modules.items()):
        path = name.removeprefix("torch_npu.")
        try:
            reached = path != name and inspect.ismodule(module) and _at(path) is module
        except AttributeError:
            continue
        if reached:
            found[path] = sorted(key for key in vars(module) if not key.startswith("__"))
    return found


def missing(wanted: dict[str, list[str]]) -> list[str]:
    """What of it cannot be had by attribute access alone."""
    lost = []
    for path, names in wanted.items():
        try:
            module = _at(path)
        except AttributeError as error:  # noqa: PERF203 - each path is tried
            lost.append(f"{path}: {error}")
        else:
            lost += [f"{path}.{name}" for name in names if not hasattr(module, name)]
    return lost


def opened(known: dict[str, list[str]]) -> list[str]:
    """Names of public modules that look public and are new: what can be called and has no underscore, in a module that
    does not say which names are."""
    found = []
    for path, names in known.items():
        module = _at(path)
        if path.startswith("_") or "._" in path or hasattr(module, "__all__"):
            continue
        new = [key for key in vars(module) if not key.startswith("_") and key not in names]
        found += [f"{path}.{key}" for key in new if callable(getattr(module, key))]
    return found


def below_torch() -> list[str]:
    """The modules of torch that can be reached from torch by attribute access."""
    found, pending = set(), [sys.modules["torch"]]
    while pending:
        module = pending.pop()
        for key, value in list(vars(module).items()):
            name = f"{module.__name__}.{key}"
            if inspect.ismodule(value) and value.__name__ == name and name not in found:
                found.add(name)
                pending.append(value)
    return sorted(found)


def unreachable(names: list[str]) -> list[str]:
    lost = []
    # The deepest first: who asks for one must not depend on another that was asked for before.
    for name in sorted(names, key=lambda name: (-name.count("."), name)):
        try:
            reached = operator.attrgetter(name.removeprefix("torch."))(sys.modules["torch"])
        except AttributeError as error:  # noqa: PERF203 - each path is tried
            lost.append(f"{name}: {error}")
        else:
            lost += [] if inspect.ismodule(reached) else [name]
    return lost


def looks() -> dict[str, list[str]]:
    """By what only looks at modules of torch_npu, which compilers it has loaded."""
    actions = {
        "dir": dir,
        "hasattr": lambda module: [hasattr(module, name) for name in dir(module)],
        "getmembers": inspect.getmembers,
        "copy": copy.copy,
        "pydoc": pydoc.render_doc,
        "autospec": mock.create_autospec,
    }
    found = {}
    for what, look in actions.items():
        for name, module in sorted(sys.modules.items()):
            if name.partition(".")[0] == "torch_npu" and inspect.ismodule(module):
                before = set(sys.modules)
                with contextlib.suppress(TypeError):  # an ordinary module cannot be copied; a placeholder can
                    look(module)
                new = [each for each in COMPILERS if each in set(sys.modules) - before]
                if new:
                    found[f"{what} {name}"] = new
    return found


def _home(value: object) -> str | None:
    value = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    of_its_own = inspect.isroutine(value) or inspect.isclass(value)
    home = getattr(value, "__module__", None) if of_its_own else type(value).__module__
    if not isinstance(home, str) or not home.startswith("torch_npu"):
        return None
    return f"{home}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def replacements() -> dict[str, str]:
    """What in torch's modules, and in the classes defined there, comes from torch_npu."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        if not name.startswith("torch.") or name.startswith("torch.npu") or not inspect.ismodule(module):
            continue
        classes = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == name]
        owners = {name: vars(module)} | {f"{name}.{each.__name__}": vars(each) for each in classes}
        for owner, names in owners.items():
            found |= {f"{owner}.{key}": home for key, value in list(names.items()) if (home := _home(value))}
    return found


def unreadable(replaced: dict[str, str]) -> list[str]:
    """The functions whose annotations cannot be evaluated, as programs that look at signatures do."""
    found = []
    for path in replaced:
        module = next(name for name in sorted(sys.modules, reverse=True) if path.startswith(f"{name}."))
        function = operator.attrgetter(path.removeprefix(f"{module}."))(sys.modules[module])
        try:
            typing.get_type_hints(function)
        except NameError as error:
            found.append(f"{path}: {error}")
        except TypeError:  # no function or class
            continue
    return found


answer: dict[str, Any] = {}
if sys.argv[1] == "look":
    print(json.dumps(looks()))
    sys.exit()
if LAZY:
    stock = json.load(sys.stdin)
    answer["new"] = len(sys.modules)
    answer["missing"] = missing(stock["names"])
    answer["opened"] = opened(stock["names"])
    answer["unreachable"] = unreachable(stock["below_torch"])
    for each in stock["modules"]:
        importlib.import_module(each)
else:
    answer["names"] = names_by_module()
    answer["below_torch"] = below_torch()
    answer["modules"] = sorted(name for name in sys.modules if name.startswith(("torch.", "torch_npu.")))
answer["replacements"] = replacements()
answer["in_lookups"] = IN_LOOKUPS
answer["unreadable"] = unreadable(answer["replacements"])
print(json.dumps(answer))
