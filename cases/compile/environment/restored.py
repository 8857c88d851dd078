"""The variable that names the code generator is back as it was after every compile, however the compile ends.

TORCHINDUCTOR_NPU_BACKEND is the user's. A compile may set it for its own time; after success, an error, a nested
compile, an abandoned generator or a change of the variable in between it has the value from before. Scopes are opened
as the wrapper opens them, by _NpuBackendScope, and by calling wrappers. The code generators are recorders.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 120
# releases = ">=2.10"
# ///

import os
import sys
import types

from harness import probe

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
os.environ.pop(VARIABLE, None)

import torch
import torch_npu.utils._dynamo as npu_dynamo

import torch._inductor.compile_fx

loaded = []
npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: loaded.append(now())
sys.modules["torch_npu._inductor"] = npu_inductor
scope = npu_dynamo._NpuBackendScope
inside = []  # what compile_fx calls


def now():
    return os.environ.get(VARIABLE)


def put(value):
    if value is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = value


def compile_fx(module, _inputs, **_):
    seen.append(now())
    for action in inside:
        action()
    return module.forward


seen = []
torch._inductor.compile_fx.compile_fx = compile_fx


def compiled_call(backend):
    torch.compiler.reset()
    return torch.compile(lambda x: x + 1, options={"npu_backend": backend})(torch.ones(1))


def nested():
    with scope("mlir"):
        probe.equal(now(), "mlir", "the variable in the outer scope")
        with scope("dvm"):
            probe.equal(now(), "dvm", "the variable in the inner scope")
        probe.equal(now(), "mlir", "the variable in the outer scope again")


def error_inside():
    with probe.raises(KeyError), scope("mlir"):
        raise KeyError("the user's")


def exit_inside():
    with probe.raises(SystemExit), scope("mlir"), scope("dvm"):
        raise SystemExit(3)


def closed_generator():
    def steps():
        with scope("mlir"):
            yield now()
            yield now()

    generator = steps()
    probe.equal(next(generator), "mlir", "the variable in a generator's scope")
    generator.close()


def thrown_generator():
    def steps():
        with scope("dvm"):
            yield now()

    generator = steps()
    next(generator)
    with probe.raises(ValueError):
        generator.throw(ValueError("thrown"))


def set_inside():
    with scope("mlir"):
        put("ascendc")


def unset_inside():
    with scope("mlir"):
        put(None)


def refused_entry():
    with probe.raises(TypeError, "str"):
        scope(1).__enter__()


def failing_load():
    def fail():
        raise OSError("no such library")

    npu_inductor._load_backend, kept = fail, npu_inductor._load_backend
    with probe.raises(OSError, "no such library"), scope("triton"):
        pass
    npu_inductor._load_backend = kept


def compile_succeeds():
    seen.clear()
    compiled_call("dvm")
    probe.equal(seen, ["dvm"], "the variable at compile_fx")


def compile_fails():
    def fail():
        raise ArithmeticError("in compile_fx")

    inside[:] = [fail]

    for backend in ("mlir", "dvm", "default"):
        with probe.raises(Exception, "in compile_fx"):
            compiled_call(backend)
    inside.clear()


def compile_in_compile():
    def open_another():
        with scope("mlir"):
            seen.append(now())
        seen.append(now())

    inside[:] = [open_another]
    seen.clear()
    compiled_call("dvm")
    inside.clear()
    probe.equal(seen, ["dvm", "mlir", "dvm"], "the variable at compile_fx, in a scope inside it, and after that")


wrong = {}
for way in (
    nested,
    error_inside,
    exit_inside,
    closed_generator,
    thrown_generator,
    set_inside,
    unset_inside,
    refused_entry,
    failing_load,
    compile_succeeds,
    compile_fails,
    compile_in_compile,
):
    for before in (None, "", "default", "mlir", "dvm"):
        put(before)
        way()
        if now() != before:
            wrong[f"{way.__name__}, {before!r} before"] = now()
probe.equal(wrong, {}, "ways of ending that leave another value of the variable")
probe.check(len(loaded) > 5, "the code generators were loaded at the switches", loaded=loaded)
