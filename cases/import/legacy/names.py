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
for name in ("float32", "int8", "float8_e4m3fn", "hifloat8", "int4"):
    probe.equal(getattr(torch_npu, name, None), getattr(torch_npu._C._cd.DType, name), f"torch_npu.{name}")
probe.same(torch_npu.ParallelStore, torch_npu._C._distributed_c10d.ParallelStore, "torch_npu.ParallelStore")
home = importlib.import_module("torch_npu.npu.amp.sharded_grad_scaler")
probe.same(torch_npu._ShardedGradScaler, home._ShardedGradScaler, "torch_npu._ShardedGradScaler")


def is_the_module(name):
    found = getattr(torch_npu.utils, name, None)  # before the import below could put it there
    probe.same(found, importlib.import_module(f"torch_npu.utils.{name}"), f"torch_npu.utils.{name}")


homes = ("custom_ops", "syncbatchnorm", "serialization", "storage", "combine_tensors", "_module", "_error_code")
probe.each(homes, is_the_module)
probe.compilers_absent()
