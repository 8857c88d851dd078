"""With enable_shape_handling a function is compiled once per gear, for sizes made up to it, with the results of eager.

The sizes are changed in front of Dynamo, so the hook must be there before torch makes Dynamo's context, in
torch.compile itself, and without NPU Inductor, which many machines cannot load. A hook that comes with the first call
instead is too late: every size is compiled anew, with right results and no word. Functions that did not ask for it are
compiled as ever. Inductor is a recorder here.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { asked = ["at_once", "after_an_ordinary_compile"] }
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import os
import sys
import types

from harness import probe

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
os.environ.pop(VARIABLE, None)

import torch
import torch_npu
import torch_npu.utils._dynamo as npu_dynamo

import torch._inductor.compile_fx

if not hasattr(torch_npu._C, "_NPUShapeHandling"):
    probe.unsupported("this release has no shape handling")

GEARS = (4, 8)
OPTIONS = {
    "enable_shape_handling": True,
    "shape_handling_configs": [{"type": "BATCHSIZE", "dimensions": [0], "indices": [0], "gears": list(GEARS)}],
}
generators, compiled_for = [], []
npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: generators.append(os.environ.get(VARIABLE))


def compile_fx(module, inputs, **_):
    compiled_for.append(*(each.shape[0] for each in inputs))
    return module.forward


torch._inductor.compile_fx.compile_fx = compile_fx


def scale(x):
    return x * 2 + 1


def ordinary(x):
    return x * 3 - 1


def compiled_for_sizes(compiled, function, sizes, what):
    """The sizes that Inductor was called for while these were given; the results are checked."""
    compiled_for.clear()
    for size in sizes:
        x = torch.randn(size, 3)
        result = compiled(x.npu())
        probe.equal(tuple(result.shape), (size, 3), f"shape of the result for size {size}, {what}")
        probe.close(result, function(x), f"result for size {size}, {what}")
    return list(compiled_for)


if probe.param("asked") == "after_an_ordinary_compile":
    first = torch.compile(ordinary, dynamic=False)
    probe.equal(npu_dynamo._lazy_dynamo_setup.has_run, True, "Dynamo setup has run")
handled = torch.compile(scale, dynamic=False, options=OPTIONS)
probe.equal(npu_dynamo._lazy_dynamo_setup.has_run, True, "Dynamo setup has run once the wrapper is made")
probe.equal(npu_dynamo._lazy_inductor_setup.has_run, False, "Inductor setup has run once the wrapper is made")
probe.equal(npu_dynamo.is_inductor_npu_initialized(), False, "NPU Inductor is initialised")
probe.modules.absent("torch_npu._inductor")
probe.equal(os.environ.get(VARIABLE), None, f"{VARIABLE} once the wrapper is made")
sys.modules["torch_npu._inductor"] = npu_inductor

sizes = (2, 3, 4, 5, 7, 8, 1, 11, 19)  # the last two are cut into pieces
probe.equal(compiled_for_sizes(handled, scale, sizes, "handled"), list(GEARS), "sizes that were compiled, handled")
probe.equal(generators, ["default"], "code generators loaded by the first call")

if probe.param("asked") == "after_an_ordinary_compile":
    probe.equal(compiled_for_sizes(first, ordinary, (2, 3), "made before"), [2, 3], "sizes compiled, made before")
later = torch.compile(lambda x: ordinary(x) + 1, dynamic=False)
found = compiled_for_sizes(later, lambda x: ordinary(x) + 1, (2, 3), "not asked for")
probe.equal(found, [2, 3], "sizes compiled for a function that did not ask")
torch.compiler.reset()
again = torch.compile(lambda x: scale(x) + 5, dynamic=False, options=OPTIONS)
found = compiled_for_sizes(again, lambda x: scale(x) + 5, (3, 2, 7), "after a reset")
probe.equal(found, list(GEARS), "sizes that were compiled, handled, after a reset")

# The hook stands before a code generator that is loaded early: its scope comes after.
marks = []
real = npu_dynamo._patch_shape_handling
npu_dynamo._patch_shape_handling = lambda: (marks.append("hook"), real())[0]
npu_inductor._load_backend = lambda: marks.append(os.environ.get(VARIABLE))
torch._TorchCompileInductorWrapper("default", {**OPTIONS, "npu_backend": "dvm"}, None)
probe.equal(marks, ["hook", "dvm"], "what making a wrapper for dvm does, in order")
probe.equal(os.environ.get(VARIABLE), None, f"{VARIABLE} afterwards")
