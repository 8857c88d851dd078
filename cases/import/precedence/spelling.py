"""The option npu-backend chooses the code generator just as npu_backend does.

torch accepts hyphens in every option name, and command-line tools hand options over with hyphens.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.9"
# ///

import os
import sys
import types
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

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


def compile_with(spelling, value):
    x = torch.arange(3.0)
    result = torch.compile(lambda x: x + 1, backend="inductor", options={spelling: value})(x)
    probe.close(result, x + 1, "the result")
    probe.equal(seen, [value], "code generator while Inductor ran")
    probe.equal(os.environ.get(VARIABLE), "some_other", f"{VARIABLE} after the compile")


wrong = {}
for spelling in ("npu-backend", "npu_backend"):
    for value in ("mlir", "dvm", "ascendc"):
        # A generator stays loaded, so each gets a copy of the process.
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            error = pool.submit(compile_with, spelling, value).exception()
        if error is not None:
            wrong[f"{spelling}={value}"] = f"{type(error).__name__}: {error}"
probe.check(not wrong, "each spelling chooses the code generator, for its own compile only", **wrong)
