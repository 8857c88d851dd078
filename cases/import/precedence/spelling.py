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

import itertools

from harness import probe
from cases import _subject as subject

subject.set_generator("some_other")

import torch
import torch_npu

seen = []
subject.fake_npu_inductor()
subject.fake_compile_fx(lambda *_, **__: seen.append(subject.generator()))


def compile_with(spelling, value):
    x = torch.arange(3.0)
    result = torch.compile(lambda x: x + 1, backend="inductor", options={spelling: value})(x)
    probe.close(result, x + 1, "the result")
    probe.equal(seen, [value], "code generator while Inductor ran")
    probe.equal(subject.generator(), "some_other", f"{subject.GENERATOR} after the compile")


# A generator stays loaded, so each gets a copy of the process.
probe.each(itertools.product(("npu-backend", "npu_backend"), ("mlir", "dvm", "ascendc")), compile_with, forked=True)
