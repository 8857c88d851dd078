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

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

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
if not hasattr(torch_npu._C, "_NPUShapeHandling"):  # a release without it has no keys for it
    VALUES = {"npu_backend": "mlir"}


def assign(key):
    value = VALUES[key]
    if probe.param("assigned_by") == "setattr":
        setattr(config, key, value)
    else:
        config.load_config({key: value})
    probe.equal(getattr(config, key), value, f"torch._inductor.config.{key} after the assignment")
    probe.equal(config.get_config_copy()[key], value, f"{key} in a copy of the configuration")
    probe.modules.absent("torch_npu._inductor")
    probe.device_untouched()


wrong = {}
for key in VALUES:
    # The first assignment may make all keys known, so each gets a copy of the process.
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        error = pool.submit(assign, key).exception()
    if error is not None:
        wrong[key] = f"{type(error).__name__}: {error}"
probe.check(not wrong, "each key can be assigned, and reads back", **wrong)
