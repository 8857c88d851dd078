"""Names that old programs take from the top level of torch_npu are still there, and are what they stand for.

They were visible by accident when the package was one big file, and came to be used in training frameworks; each
release that lost one broke an installed base.
"""

# /// script
# [tool.conformance]
# rule = "import/legacy/1"
# level = "must"
# matrix = { name = ["unsupported_dtype", "ParallelStore", "_ShardedGradScaler", "dtype", "utils", "version"] }
# timeout = 60
# releases = ">=2.13"
# ///

import importlib

import torch
import torch_npu
from harness import probe

match probe.param("name"):
    case "unsupported_dtype":
        quantized = {torch.quint8, torch.quint4x2, torch.quint2x4, torch.qint32, torch.qint8}
        probe.equal(set(torch_npu.unsupported_dtype), quantized, "torch_npu.unsupported_dtype")
    case "ParallelStore":
        probe.same(torch_npu.ParallelStore, torch_npu._C._distributed_c10d.ParallelStore, "torch_npu.ParallelStore")
    case "_ShardedGradScaler":
        home = importlib.import_module("torch_npu.npu.amp.sharded_grad_scaler")
        probe.same(torch_npu._ShardedGradScaler, home._ShardedGradScaler, "torch_npu._ShardedGradScaler")
    case "dtype":
        for name in ("float32", "int8", "float8_e4m3fn", "hifloat8", "int4"):
            probe.equal(getattr(torch_npu, name), getattr(torch_npu._C._cd.DType, name), f"torch_npu.{name}")
    case "utils":
        for name in (
            "custom_ops",
            "syncbatchnorm",
            "serialization",
            "storage",
            "combine_tensors",
            "_module",
            "_error_code",
        ):
            home = importlib.import_module(f"torch_npu.utils.{name}")
            probe.same(getattr(torch_npu.utils, name), home, f"torch_npu.utils.{name}")
    case "version":
        probe.equal(torch_npu.__version__, torch_npu.version.__version__, "torch_npu.__version__")
probe.compilers_absent()
