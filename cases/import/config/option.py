"""torch.compile takes each NPU key as an option before any compile, in both spellings, and loads no NPU Inductor.

Options are the per-function way to choose. Building the compiled function is cheap by contract: the code generator is
loaded by the first call, since machines without a kernel compiler must be able to import a decorated library.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.10"
# ///

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

VALUES = {
    "npu_backend": "default",
    "enable_shape_handling": True,
    "shape_handling_configs": [{"type": "BATCHSIZE"}],
    "shape_handling_dict": {"gears": [1, 2]},
}
if not subject.has_shape_handling():
    VALUES = {"npu_backend": "default"}


def compile_with(option):
    key = option.replace("-", "_")
    compiled = torch.compile(lambda x: x + 1, backend="inductor", options={option: VALUES[key]})
    probe.check(callable(compiled), "torch.compile gives a callable")
    wrapper = torch._TorchCompileInductorWrapper(None, {option: VALUES[key]}, None)
    probe.equal(wrapper.config, {key: VALUES[key]}, "options as the wrapper keeps them")
    probe.modules.absent("torch_npu._inductor")
    probe.device_untouched()


# After the first compile the keys are known anyhow, so each option gets a copy of the process.
probe.each(["npu_backend"], compile_with, forked=True)
import torch._inductor.compile_fx  # the first option went without; the others share this import, which takes seconds

probe.each([*VALUES, *(key.replace("_", "-") for key in VALUES)], compile_with, forked=True)
