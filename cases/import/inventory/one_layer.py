"""torch_npu's patches of Dynamo and Inductor lie there once, however often and from wherever they are applied.

A flag or a run-once of the patching module is gone with a reload of it, and a look at the outermost function alone is
fooled by whoever has patched after: each method then calls torch_npu's part twice, or itself.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { applied_by = ["reload", "copy"], others = ["none", "above", "below"] }
# timeout = 120
# releases = ">=2.10"
# ///

import importlib
import sys

from harness import probe
from cases import _subject as subject

import torch
import torch._dynamo.variables.builtin
import torch._dynamo.variables.streams
import torch._dynamo.variables.user_defined
import torch._inductor.compile_fx

NAME = "torch_npu.utils._dynamo"
PLACES = [
    (torch._TorchCompileInductorWrapper, "__init__"),
    (torch._TorchCompileInductorWrapper, "__call__"),
    (torch._TorchCompileInductorWrapper, "apply_options"),
    (torch.utils._config_module.ConfigModule, "get_config_copy"),
    (torch._dynamo.eval_frame, "optimize"),
    (torch._dynamo.variables.builtin.BuiltinVariable, "call_id"),
    (torch._dynamo.variables.user_defined.UserDefinedClassVariable, "__new__"),
    (torch._dynamo.variables.streams.StreamVariable, "python_type"),
    (torch._inductor.compile_fx, "_maybe_wrap_and_compile_fx_main"),
    (torch.utils._triton, "_device_supports_tma"),
]
PLACES = [(owner, name) for owner, name in PLACES if hasattr(owner, name)]


def layers():
    return {f"{owner.__name__}.{name}": subject.layers_of_torch_npu(getattr(owner, name)) for owner, name in PLACES}


def apply():
    module = importlib.import_module(NAME)
    module.add_dynamo_methods()
    module._lazy_dynamo_setup()


if probe.param("others") == "below":
    subject.wrap_as_others_do(PLACES)
import torch_npu

apply()
once = layers()
if probe.param("others") == "above":
    subject.wrap_as_others_do(PLACES)
for _ in range(3):
    if probe.param("applied_by") == "reload":
        importlib.reload(sys.modules[NAME])
    else:
        del sys.modules[NAME]
    apply()
probe.equal(layers(), once, "layers after three more times")
compiled = torch.compile(lambda x: torch.npu.Stream and x + 1, backend="eager")
probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
