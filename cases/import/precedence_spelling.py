"""The option npu-backend chooses the code generator just as npu_backend does.

torch accepts hyphens in every option name, and command-line tools hand options over with hyphens.
"""

# /// script
# [tool.conformance]
# rule = "import/precedence/3"
# level = "must"
# matrix = { spelling = ["npu-backend", "npu_backend"], value = ["mlir", "dvm", "ascendc"] }
# timeout = 60
# releases = ">=2.9"
# ///

import os
import sys
import types

from harness import probe

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
os.environ[VARIABLE] = "some_other"

import torch
import torch_npu

import torch._inductor.compile_fx

npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: None
npu_inductor.__path__ = []
sys.modules["torch_npu._inductor"] = npu_inductor
# The generator ascendc also extends the cache keys; its helper is part of NPU Inductor and stands in here as well.
cache = types.ModuleType("torch_npu._inductor.deterministic_cache")
cache.patch_npu_deterministic_level_cache_keys = lambda: None
sys.modules[cache.__name__] = cache
seen = []


def compile_fx(model, _inputs, **_):
    seen.append(os.environ.get(VARIABLE))
    return model.forward


torch._inductor.compile_fx.compile_fx = compile_fx
x = torch.arange(3.0)
options = {probe.param("spelling"): probe.param("value")}
result = torch.compile(lambda x: x + 1, backend="inductor", options=options)(x)
probe.close(result, x + 1, "the result")
probe.equal(seen, [probe.param("value")], "code generator while Inductor ran")
probe.equal(os.environ.get(VARIABLE), "some_other", f"{VARIABLE} after the compile")
