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

from itertools import groupby

from harness import probe
from cases import _subject as subject

subject.set_generator(None)

import torch
import torch_npu

loaded, ran = [], []
subject.fake_npu_inductor(on_load=lambda: loaded.append(subject.generator()))
subject.fake_compile_fx(lambda *_, **__: ran.append((subject.generator(), loaded[-1])))


def run(*sequence):
    for backend in sequence:
        wrapper = torch._TorchCompileInductorWrapper("default", {"npu_backend": backend}, None)
        wrapper(torch.fx.symbolic_trace(torch.nn.Identity()), [torch.ones(1)])
        probe.equal(subject.generator(), None, f"{subject.GENERATOR} after a compile with {backend}")

    probe.equal(ran, [(backend, backend) for backend in sequence], "(chosen, loaded last) at each compile")
    probe.equal(loaded, [backend for backend, _ in groupby(sequence)], "code generators loaded, in order")


SEQUENCES = (
    ("mlir", "dvm", "mlir"),
    ("default", "mlir", "default"),
    ("mlir", "mlir", "mlir"),
    ("dvm", "default", "default", "dvm"),
)
probe.each(SEQUENCES, run, forked=True)  # the first load happens once in a process
