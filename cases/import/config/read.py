"""The NPU keys of torch._inductor.config can be read, with their defaults, before anything is compiled.

Scripts look at `torch._inductor.config.npu_backend` at the top, right after the imports; with eager releases that
worked. A key that appears only after some other call makes the same line right or wrong by accident. Reading it loads
no NPU Inductor.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { config_imported = ["after_torch_npu", "before_torch_npu"] }
# timeout = 60
# releases = ">=2.10"
# ///

from harness import probe

import torch

if probe.param("config_imported") == "before_torch_npu":
    import torch._inductor.config
import torch_npu

DEFAULTS = {
    "npu_backend": "default",
    "enable_shape_handling": False,
    "shape_handling_configs": [],
    "shape_handling_dict": None,
}
if not hasattr(torch_npu._C, "_NPUShapeHandling"):  # a release without it has no keys for it
    DEFAULTS = {"npu_backend": "default"}

import torch._inductor.config as config


def read(key):
    try:
        return getattr(config, key)
    except AttributeError as error:
        return f"AttributeError: {error}"


probe.equal({key: read(key) for key in DEFAULTS}, DEFAULTS, "keys of torch._inductor.config before any compile")
probe.equal({key: hasattr(config, key) for key in DEFAULTS}, dict.fromkeys(DEFAULTS, True), "answers of hasattr")
probe.modules.absent("torch_npu._inductor")
probe.device_untouched()
