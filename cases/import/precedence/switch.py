"""Compiles in one process that choose different code generators each run with their own, loaded at each switch.

Comparing two generators side by side, or keeping one function on another generator, is ordinary use. A generator that
was loaded last must not serve a compile that asked for another one.
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
from itertools import groupby
from multiprocessing import get_context

from harness import probe

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
os.environ.pop(VARIABLE, None)

import torch
import torch_npu

import torch._inductor.compile_fx

loaded, ran = [], []
npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: loaded.append(os.environ.get(VARIABLE))
sys.modules["torch_npu._inductor"] = npu_inductor


def compile_fx(model, _inputs, **_):
    ran.append((os.environ.get(VARIABLE), loaded[-1]))
    return model


torch._inductor.compile_fx.compile_fx = compile_fx


def run(*sequence):
    for backend in sequence:
        wrapper = torch._TorchCompileInductorWrapper("default", {"npu_backend": backend}, None)
        wrapper(torch.fx.symbolic_trace(torch.nn.Identity()), [torch.ones(1)])
        probe.equal(os.environ.get(VARIABLE), None, f"{VARIABLE} after a compile with {backend}")

    probe.equal(ran, [(backend, backend) for backend in sequence], "(chosen, loaded last) at each compile")
    probe.equal(loaded, [backend for backend, _ in groupby(sequence)], "code generators loaded, in order")


SEQUENCES = (
    ("mlir", "dvm", "mlir"),
    ("default", "mlir", "default"),
    ("mlir", "mlir", "mlir"),
    ("dvm", "default", "default", "dvm"),
)
wrong = {}
for sequence in SEQUENCES:
    # The first load happens once in a process, so each sequence gets a copy of this one.
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        error = pool.submit(run, *sequence).exception()
    if error is not None:
        wrong["-".join(sequence)] = f"{type(error).__name__}: {error}"
probe.check(not wrong, "each compile runs with the generator it chose, loaded at each switch", **wrong)
