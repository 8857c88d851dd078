"""`import torch.onnx` beside torch_npu needs neither onnx nor onnxscript, and loads no compiler.

Libraries import it at the top of a file for a function that most of their users never call.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["onnx_first", "npu_first"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys

from harness import probe

for name in ("onnx", "onnxscript", "onnx_ir", "onnxruntime"):
    sys.modules[name] = None

import torch

if probe.param("order") == "onnx_first":
    import torch.onnx

    before = torch.onnx.export
    import torch_npu

    probe.same(torch.onnx.export, before, "torch.onnx.export after `import torch_npu`")
else:
    import torch_npu
    import torch.onnx

probe.check(callable(torch.onnx.export), "torch.onnx.export can be called")
probe.equal(torch.onnx.export.__module__, "torch.onnx", "where torch.onnx.export is from")
probe.compilers_absent()
probe.device_untouched()
