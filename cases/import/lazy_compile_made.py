"""Making a compiled function, without calling it, loads neither NPU Inductor nor Triton and leaves the device alone.

`torch.compile` as a decorator runs when a library is imported. Where triton-ascend is not installed such a library
must still import; only calling the function needs a kernel compiler.
"""

# /// script
# [tool.conformance]
# rule = "import/lazy/3"
# level = "must"
# matrix = { backend = ["inductor", "eager", "aot_eager", "npugraph_ex", "npugraphs", "callable"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import os

import torch
import torch_npu.utils._dynamo as npu_dynamo
from harness import probe

before = os.environ.get("TORCHINDUCTOR_NPU_BACKEND")
backend = probe.param("backend")
compiled = torch.compile(lambda x: x + 1, backend=(lambda gm, _: gm.forward) if backend == "callable" else backend)

probe.check(callable(compiled), "torch.compile gives a callable")
probe.equal(npu_dynamo._lazy_dynamo_setup.has_run, True, "Dynamo setup has run once a function is compiled")
probe.equal(npu_dynamo._lazy_inductor_setup.has_run, False, "Inductor setup has run before the first call")
probe.equal(npu_dynamo.is_inductor_npu_initialized(), False, "is_inductor_npu_initialized()")
probe.equal(os.environ.get("TORCHINDUCTOR_NPU_BACKEND"), before, "TORCHINDUCTOR_NPU_BACKEND")
probe.modules.absent("torch_npu._inductor", "triton", "torch_npu.npu._graph_tree")
probe.device_untouched()
