"""The names that TORCH_LOGS may give the NPU's logs, known before torch_npu is there to register them: torch reads the
variable at the end of its own import, which is before that where torch_npu is imported first or autoload is off."""

from __future__ import annotations

import os

from torch_npu_lazy.wheel.patching import PatchingLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

HOME = "torch._logging._internal"
VARIABLE = "TORCH_LOGS"


def with_names(spec: ModuleSpec) -> ModuleSpec:
    """For `HOME`."""
    spec.loader = _Loader(spec, patched=False)  # type: ignore[assignment]
    return spec


class _Loader(PatchingLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        # Nobody else pays for it, and what an unknown name is told comes from torch.
        if os.environ.get(VARIABLE):
            from torch_npu_lazy.wheel import bootstrap

            package = bootstrap.package_in_force()
            if package is not None:
                _register(module, os.path.join(package, "_logging", "_internal.py"))  # noqa: PTH118


def _register(logs: ModuleType, file: str) -> None:
    """Do what the wheel's file does to torch's registry, without executing it: it takes the C extension for granted."""
    import ast

    from torch_npu_lazy.core import events

    try:
        with open(file, encoding="utf-8") as source:  # noqa: PTH123
            tree = ast.parse(source.read())
    except (OSError, ValueError, SyntaxError) as error:  # the wheel registers them all the same, if later
        events.record("unknown", f"names of {VARIABLE}", events.failure(error))
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "register_log":
            logs.register_log(*map(ast.literal_eval, node.args))
    events.record("registered", f"names of {VARIABLE}")
