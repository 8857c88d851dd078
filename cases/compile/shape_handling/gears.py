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

from harness import probe
from cases import _subject as subject

subject.set_generator(None)

import torch
import torch_npu

if not subject.has_shape_handling():
    probe.unsupported("this release has no shape handling")

GEARS = [4, 8]
OPTIONS = {
    "enable_shape_handling": True,
    "shape_handling_configs": [{"type": "BATCHSIZE", "dimensions": [0], "indices": [0], "gears": GEARS}],
}
generators, compiled_for = [], []
subject.fake_compile_fx(lambda _, inputs, **__: compiled_for.extend(each.shape[0] for each in inputs))


def scale(x):
    return x * 2 + 1


def ordinary(x):
    return x * 3 - 1


def judge(compiled, function, sizes, expected):
    """Call it with these sizes: the results must be right, and Inductor called for the expected sizes alone."""
    compiled_for.clear()
    for size in sizes:
        x = torch.randn(size, 3)
        probe.close(compiled(x.npu()), function(x), f"result for size {size}")
    probe.equal(compiled_for, expected, "sizes that were compiled")


if probe.param("asked") == "after_an_ordinary_compile":
    earlier = torch.compile(ordinary, dynamic=False)
handled = torch.compile(scale, dynamic=False, options=OPTIONS)
probe.equal(subject.dynamo_setup.has_run, True, "Dynamo setup has run once the wrapper is made")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run once the wrapper is made")
probe.equal(subject.inductor_is_loaded(), False, "NPU Inductor is loaded once the wrapper is made")
probe.modules.absent("torch_npu._inductor")
probe.equal(subject.generator(), None, f"{subject.GENERATOR} once the wrapper is made")

subject.fake_npu_inductor(on_load=lambda: generators.append(subject.generator()))
judge(handled, scale, (2, 3, 4, 5, 7, 8, 1, 11, 19), GEARS)  # the last two are cut into pieces
probe.equal(generators, ["default"], "code generators loaded by the first call")
if probe.param("asked") == "after_an_ordinary_compile":
    judge(earlier, ordinary, (2, 3), [2, 3])
judge(torch.compile(lambda x: ordinary(x) + 1, dynamic=False), lambda x: ordinary(x) + 1, (2, 3), [2, 3])
torch.compiler.reset()
again = torch.compile(lambda x: scale(x) + 5, dynamic=False, options=OPTIONS)
judge(again, lambda x: scale(x) + 5, (3, 2, 7), GEARS)
