"""An NPU key of torch._inductor.config can be assigned before anything is compiled, and reads back what was assigned.

`torch._inductor.config.npu_backend = "mlir"` is how a program chooses the NPU's code generator for all its compiles.
It must not depend on something having compiled before.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { assigned_by = ["setattr", "load_config"] }
# timeout = 120
# releases = ">=2.10"
# ///

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

import torch._inductor.config as config

VALUES = {
    "npu_backend": "mlir",
    "enable_shape_handling": True,
    "shape_handling_configs": [{"type": "BATCHSIZE"}],
    "shape_handling_dict": {"gears": [1, 2]},
}
if not subject.has_shape_handling():
    VALUES = {"npu_backend": "mlir"}


def assign(key):
    value = VALUES[key]
    if probe.param("assigned_by") == "setattr":
        setattr(config, key, value)
    else:
        config.load_config({key: value})
    probe.equal(getattr(config, key), value, "the key after the assignment")
    probe.equal(config.get_config_copy()[key], value, "the key in a copy of the configuration")
    probe.modules.absent("torch_npu._inductor")
    probe.device_untouched()


probe.each(list(VALUES), assign, forked=True)  # the first assignment may make all keys known
