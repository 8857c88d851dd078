"""`import torch_npu._inductor` gives torch._inductor.config its NPU keys, with their defaults, readable and assignable.

Programs that choose the NPU backend globally import NPU Inductor and then write `config.npu_backend = ...`. If the
keys come only with the first compile, that assignment fails, or, worse, the first compile overwrites it.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { first = ["torch_npu", "torch._dynamo", "torch._inductor.config"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib
import os

os.environ["TORCH_WARM_POOL"] = "1"  # as outside of this suite: starting the workers is part of this import

import torch
import torch_npu
from harness import probe

probe.modules.absent("torch._inductor", "torch_npu._inductor")
importlib.import_module(probe.param("first"))

try:
    import torch_npu._inductor
except ModuleNotFoundError as error:
    if error.name != "triton" or torch.__version__ >= "2.12":
        raise
    probe.unsupported("before 2.12 a wheel's NPU Inductor may need Triton at import")
from torch._inductor import config

keys = {"npu_backend": ("default", "dvm")}
if hasattr(torch_npu._C, "_NPUShapeHandling"):  # a release without it has no keys for it
    keys["enable_shape_handling"] = (False, True)
    probe.equal(config.shape_handling_configs, [], "shape_handling_configs")
    probe.equal(config.shape_handling_dict, None, "shape_handling_dict")
for key, (default, _) in keys.items():
    probe.equal(getattr(config, key), default, key)

config.npu_backend = "mlir"
probe.equal(config.npu_backend, "mlir", "npu_backend after assignment")
probe.equal(config.get_config_copy()["npu_backend"], "mlir", "npu_backend in a copy of the configuration")
config.npu_backend = "default"
with config.patch(**{key: value for key, (_, value) in keys.items()}):
    for key, (_, value) in keys.items():
        probe.equal(getattr(config, key), value, f"{key} inside the block that patches it")
for key, (default, _) in keys.items():
    probe.equal(getattr(config, key), default, f"{key} after the block")
with probe.raises(AttributeError, match="no_such_npu_key"):
    config.no_such_npu_key = 1
