"""The code generators mlir and dvm are loaded when torch.compile builds the wrapper, every other one by the first call.

Whoever decorates a function must not need Triton until the function is called; mlir and dvm on the other hand have to
prepare the process before Dynamo traces. Where the choice comes from makes no difference.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.10"
# ///

import os
import sys
import types
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness import probe

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
os.environ.pop(VARIABLE, None)

import torch
import torch_npu

import torch._inductor.compile_fx
import torch._inductor.config as config

loaded = []
npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: loaded.append(os.environ.get(VARIABLE))
sys.modules["torch_npu._inductor"] = npu_inductor
torch._inductor.compile_fx.compile_fx = lambda model, _inputs, **_: model

config.get_config_copy()  # from here on the NPU keys exist in every release


def build_and_call(source, backend):
    options = None
    match source:
        case "option":
            options = {"npu_backend": backend}
        case "config":
            config.npu_backend = backend
        case _:
            os.environ[VARIABLE] = backend
    before = os.environ.get(VARIABLE)

    wrapper = torch._TorchCompileInductorWrapper("default", options, None)
    probe.equal(
        loaded, [backend] if backend in ("mlir", "dvm") else [], "code generators loaded when the wrapper is built"
    )
    probe.equal(os.environ.get(VARIABLE), before, f"{VARIABLE} after the wrapper was built")

    for _ in range(2):
        wrapper(torch.fx.symbolic_trace(torch.nn.Identity()), [torch.ones(1)])
    probe.equal(loaded, [backend], "code generators loaded after two calls")
    probe.equal(os.environ.get(VARIABLE), before, f"{VARIABLE} after the calls")


wrong = {}
for source in ("option", "config", "environment"):
    for backend in ("default", "mlir", "dvm", "some_new_name"):
        # A generator stays loaded, so each combination gets a copy of the process.
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            error = pool.submit(build_and_call, source, backend).exception()
        if error is not None:
            wrong[f"{backend} by {source}"] = f"{type(error).__name__}: {error}"
probe.check(not wrong, "each code generator is loaded once, and not before its time", **wrong)
