"""The signatures of torch's public entry functions read the same before and after `import torch_npu` and Dynamo setup.

Argument parsers, documentation and wrappers are generated from signatures. The control is a fresh interpreter without
torch_npu.
"""

# /// script
# [tool.conformance]
# rule = "import/identity/2"
# level = "must"
# matrix = { moment = ["imported", "dynamo_set_up"], name = [
#   "compile", "export.export", "onnx.export", "_TorchCompileWrapper.__init__",
#   "compiler.list_backends", "compiler.reset", "nn.Module.compile",
# ] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import inspect
import operator

from harness import probe

CONTROL = """
import inspect, operator, sys, torch, torch.export, torch.onnx
print(inspect.signature(operator.attrgetter(sys.argv[1])(torch)))
"""

name = probe.param("name")
plain = probe.python(CONTROL, name, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}).stdout.splitlines()[-1]

import torch
import torch.export
import torch.onnx
import torch_npu

if probe.param("moment") == "dynamo_set_up":
    import torch._dynamo
probe.equal(str(inspect.signature(operator.attrgetter(name)(torch))), plain, f"signature of torch.{name}")
