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

import itertools

from harness import probe
from cases import _subject as subject

subject.set_generator(None)

import torch
import torch_npu

import torch._inductor.config as config

loaded = []
subject.fake_npu_inductor(on_load=lambda: loaded.append(subject.generator()))
subject.fake_compile_fx(lambda *_, **__: None)
config.get_config_copy()  # from here on the NPU keys exist in every release


def build_and_call(source, backend):
    options = None
    match source:
        case "option":
            options = {"npu_backend": backend}
        case "config":
            config.npu_backend = backend
        case _:
            subject.set_generator(backend)
    before = subject.generator()

    wrapper = torch._TorchCompileInductorWrapper("default", options, None)
    early = [backend] if backend in ("mlir", "dvm") else []
    probe.equal(loaded, early, "code generators loaded when the wrapper is built")
    probe.equal(subject.generator(), before, f"{subject.GENERATOR} after the wrapper was built")

    for _ in range(2):
        wrapper(torch.fx.symbolic_trace(torch.nn.Identity()), [torch.ones(1)])
    probe.equal(loaded, [backend], "code generators loaded after two calls")
    probe.equal(subject.generator(), before, f"{subject.GENERATOR} after the calls")


sources, backends = ("option", "config", "environment"), ("default", "mlir", "dvm", "some_new_name")
probe.each(itertools.product(sources, backends), build_and_call, forked=True)  # a generator stays loaded
