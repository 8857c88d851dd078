"""The variable that names the code generator is back as it was after every scope that sets it, however the scope ends.

TORCHINDUCTOR_NPU_BACKEND is the user's. A scope, which each compile opens, may set it for its own time; after an
error, a nested scope, an abandoned generator or a change of the variable in between it has the value from before.
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

subject.fake_npu_inductor()


def nested():
    with subject.generator_scope("mlir"):
        probe.equal(subject.generator(), "mlir", "the variable in the outer scope")
        with subject.generator_scope("dvm"):
            probe.equal(subject.generator(), "dvm", "the variable in the inner scope")
        probe.equal(subject.generator(), "mlir", "the variable in the outer scope again")


def error_inside():
    with probe.raises(KeyError), subject.generator_scope("mlir"):
        raise KeyError("the user's")


def exit_inside():
    with probe.raises(SystemExit), subject.generator_scope("mlir"), subject.generator_scope("dvm"):
        raise SystemExit(3)


def closed_generator():
    def steps():
        with subject.generator_scope("mlir"):
            yield subject.generator()
            yield subject.generator()

    generator = steps()
    probe.equal(next(generator), "mlir", "the variable in a generator's scope")
    generator.close()


def thrown_generator():
    def steps():
        with subject.generator_scope("dvm"):
            yield subject.generator()

    generator = steps()
    next(generator)
    with probe.raises(ValueError):
        generator.throw(ValueError("thrown"))


def set_inside():
    with subject.generator_scope("mlir"):
        subject.set_generator("ascendc")


def unset_inside():
    with subject.generator_scope("mlir"):
        subject.set_generator(None)


def refused_entry():
    with probe.raises(TypeError, "str"):
        subject.generator_scope(1).__enter__()


def failing_load():
    def fail():
        raise OSError("no such library")

    subject.fake_npu_inductor(on_load=fail)
    with probe.raises(OSError, "no such library"), subject.generator_scope("triton"):
        pass
    subject.fake_npu_inductor()


def judge(way, before):
    subject.set_generator(before)
    way()
    probe.equal(subject.generator(), before, "the variable afterwards")


WAYS = (
    nested,
    error_inside,
    exit_inside,
    closed_generator,
    thrown_generator,
    set_inside,
    unset_inside,
    refused_entry,
    failing_load,
)
probe.each(itertools.product(WAYS, (None, "", "default", "mlir", "dvm")), judge)
