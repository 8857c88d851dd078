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

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness import probe

import torch
import torch_npu

VALUES = {
    "npu_backend": "default",
    "enable_shape_handling": True,
    "shape_handling_configs": [{"type": "BATCHSIZE"}],
    "shape_handling_dict": {"gears": [1, 2]},
}
if not hasattr(torch_npu._C, "_NPUShapeHandling"):  # a release without it has no keys for it
    VALUES = {"npu_backend": "default"}


def compile_with(key, option):
    compiled = torch.compile(lambda x: x + 1, backend="inductor", options={option: VALUES[key]})
    probe.check(callable(compiled), "torch.compile gives a callable")
    wrapper = torch._TorchCompileInductorWrapper(None, {option: VALUES[key]}, None)
    probe.equal(wrapper.config, {key: VALUES[key]}, "options as the wrapper keeps them")
    probe.modules.absent("torch_npu._inductor")
    probe.device_untouched()


wrong = {}
for key in VALUES:
    for option in (key, key.replace("_", "-")):
        # After the first compile the keys are known anyhow, so each option gets a copy of the process.
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            error = pool.submit(compile_with, key, option).exception()
        if error is not None:
            wrong[option] = f"{type(error).__name__}: {error}"
        # The first option has been tried without it; from here on the copies share this import, which takes seconds.
        import torch._inductor.compile_fx
probe.check(not wrong, "each option is taken, and neither NPU Inductor nor the device is needed for it", **wrong)
