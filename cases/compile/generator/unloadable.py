"""A code generator that cannot be loaded is refused by name, and the one before it goes on working.

torch_mlir is no part of torch_npu: naming it as npu_backend without having it is an ordinary mistake in a long-lived
process, which has compiled before and will again.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { given_by = ["option", "environment"] }
# needs = ["ops", "triton", "kernels"]
# timeout = 180
# releases = ">=2.13"
# ///

import importlib.util
import os
import warnings

import torch
import torch_npu
from harness import probe

if importlib.util.find_spec("torch_mlir"):
    probe.unsupported("torch_mlir is installed here")
warnings.simplefilter("ignore")
x = torch.linspace(-2, 2, 30).reshape(5, 6)


def compiled_by(generator, power):
    torch._dynamo.reset()
    options = {}
    if probe.param("given_by") == "option" and generator != "default":
        options = {"npu_backend": generator}
    elif probe.param("given_by") == "environment":
        os.environ["TORCHINDUCTOR_NPU_BACKEND"] = generator
    return torch.compile(lambda x: (x.abs() + 1) ** power, options=options, fullgraph=True)(x.npu())


probe.close(compiled_by("default", 2), (x.abs() + 1) ** 2, "result of the first generator", rtol=1e-5)
with probe.raises(Exception, match="torch_mlir"):
    compiled_by("mlir", 3)
launches = probe.device_calls()["rtKernelLaunch"]
probe.close(compiled_by("default", 3), (x.abs() + 1) ** 3, "result of the first generator again", rtol=1e-5)
probe.check(probe.device_calls()["rtKernelLaunch"] > launches, "it made kernels again")
