"""torch.compile takes each NPU key as an option before any compile, in both spellings, and loads no NPU Inductor.

Options are the per-function way to choose. Building the compiled function is cheap by contract: the code generator is
loaded by the first call, since machines without a kernel compiler must be able to import a decorated library.
"""

# /// script
# [tool.conformance]
# rule = "import/config/4"
# level = "must"
# matrix = { spelling = ["underscore", "hyphen"], key = [
#   "npu_backend", "enable_shape_handling", "shape_handling_configs", "shape_handling_dict",
# ] }
# timeout = 60
# releases = ">=2.13"
# ///

from harness import probe

import torch
import torch_npu

VALUES = {
    "npu_backend": "default",
    "enable_shape_handling": True,
    "shape_handling_configs": [{"type": "BATCHSIZE"}],
    "shape_handling_dict": {"gears": [1, 2]},
}
key = probe.param("key")
option = key.replace("_", "-") if probe.param("spelling") == "hyphen" else key

compiled = torch.compile(lambda x: x + 1, backend="inductor", options={option: VALUES[key]})
probe.check(callable(compiled), "torch.compile gives a callable")
wrapper = torch._TorchCompileInductorWrapper(None, {option: VALUES[key]}, None)
probe.equal(wrapper.config, {key: VALUES[key]}, "options as the wrapper keeps them")
probe.modules.absent("torch_npu._inductor")
probe.device_untouched()
