"""Names that old programs take from the top level of torch_npu are still there, and are what they stand for.

They were visible by accident when the package was one big file, and came to be used in training frameworks; each
release that lost one broke an installed base.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.10"
# ///

import importlib

import torch
import torch_npu
from harness import probe

quantized = {torch.quint8, torch.quint4x2, torch.quint2x4, torch.qint32, torch.qint8}
probe.equal(set(torch_npu.unsupported_dtype), quantized, "torch_npu.unsupported_dtype")
probe.equal(torch_npu.__version__, torch_npu.version.__version__, "torch_npu.__version__")
names = ("float32", "int8", "float8_e4m3fn", "hifloat8", "int4")
wrong = [name for name in names if getattr(torch_npu, name, None) != getattr(torch_npu._C._cd.DType, name)]
probe.equal(wrong, [], "data types of torch_npu that are missing or others than those of torch_npu._C._cd.DType")

expected = {
    "ParallelStore": torch_npu._C._distributed_c10d.ParallelStore,
    "_ShardedGradScaler": importlib.import_module("torch_npu.npu.amp.sharded_grad_scaler")._ShardedGradScaler,
}
wrong = [f"torch_npu.{name}" for name, value in expected.items() if getattr(torch_npu, name, None) is not value]
homes = ("custom_ops", "syncbatchnorm", "serialization", "storage", "combine_tensors", "_module", "_error_code")
found = {name: getattr(torch_npu.utils, name, None) for name in homes}  # before the imports below could put them there
wrong += [
    f"torch_npu.utils.{name}" for name in homes if found[name] is not importlib.import_module(f"torch_npu.utils.{name}")
]
probe.equal(wrong, [], "names that are missing, or stand for something else")
probe.compilers_absent()
