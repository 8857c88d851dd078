"""An NPU key of torch._inductor.config can be assigned before anything is compiled, and reads back what was assigned.

`torch._inductor.config.npu_backend = "mlir"` is how a program chooses the NPU's code generator for all its compiles.
It must not depend on something having compiled before.
"""

# /// script
# [tool.conformance]
# rule = "import/config/2"
# level = "must"
# matrix = { assigned_by = ["setattr", "load_config"], key = [
#   "npu_backend", "enable_shape_handling", "shape_handling_configs", "shape_handling_dict",
# ] }
# timeout = 60
# releases = ">=2.13"
# ///

from harness import probe

import torch
import torch_npu

import torch._inductor.config as config

VALUES = {
    "npu_backend": "mlir",
    "enable_shape_handling": True,
    "shape_handling_configs": [{"type": "BATCHSIZE"}],
    "shape_handling_dict": {"gears": [1, 2]},
}
key = probe.param("key")
value = VALUES[key]
try:
    if probe.param("assigned_by") == "setattr":
        setattr(config, key, value)
    else:
        config.load_config({key: value})
    found = getattr(config, key)
except AttributeError as error:
    found = f"AttributeError: {error}"
probe.equal(found, value, f"torch._inductor.config.{key} after the assignment")
probe.equal(config.get_config_copy()[key], value, f"{key} in a copy of the configuration")
probe.modules.absent("torch_npu._inductor")
probe.device_untouched()
