"""The variable that names the code generator is back as it was after every compile, however the compile ends.

TORCHINDUCTOR_NPU_BACKEND is the user's. A compile may set it for its own time; after success, an error, or another
scope inside, it has the value from before. Inductor and the code generators are recorders.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 120
# releases = ">=2.10"
# ///

import itertools

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

loaded, seen = [], []
subject.fake_npu_inductor(on_load=lambda: loaded.append(subject.generator()))


def compiled_call(generator, on_compile):
    torch.compiler.reset()
    subject.fake_compile_fx(on_compile)
    return torch.compile(lambda x: x + 1, options={"npu_backend": generator})(torch.ones(1))


def look(*_, **__):
    seen.append(subject.generator())


def fail(*_, **__):
    raise ArithmeticError("in compile_fx")


def open_another_scope(*_, **__):
    look()
    with subject.generator_scope("mlir"):
        look()
    look()


def success():
    compiled_call("dvm", look)
    probe.equal(seen, ["dvm"], "the variable in the compile")


def error():
    for generator in ("mlir", "dvm", "default"):
        with probe.raises(Exception, "in compile_fx"):
            compiled_call(generator, fail)


def scope_inside():
    compiled_call("dvm", open_another_scope)
    probe.equal(seen, ["dvm", "mlir", "dvm"], "the variable in the compile, in a scope inside it, and after that")


def judge(way, before):
    seen.clear()
    subject.set_generator(before)
    way()
    probe.equal(subject.generator(), before, "the variable afterwards")


probe.each(itertools.product((success, error, scope_inside), (None, "", "default", "mlir", "dvm")), judge)
probe.check(len(loaded) > 5, "the code generators were loaded at the switches", loaded=loaded)
