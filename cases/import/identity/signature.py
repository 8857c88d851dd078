"""The signatures of torch's public entry functions read the same before and after `import torch_npu` and Dynamo setup.

Argument parsers, documentation and wrappers are generated from signatures. The control is the same
interpreter before `import torch_npu`.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 60
# releases = ">=2.7.1"
# ///

import inspect
import operator

from harness import probe

import torch
import torch.export
import torch.onnx

NAMES = (
    *("compile", "export.export", "onnx.export", "_TorchCompileWrapper.__init__"),
    *("compiler.list_backends", "compiler.reset", "nn.Module.compile"),
)


def signatures():
    return {name: str(inspect.signature(operator.attrgetter(name)(torch))) for name in NAMES}


plain = signatures()
changed = {}


def compare(moment):
    for name, signature in signatures().items():
        if signature != plain[name]:
            changed[f"torch.{name} {moment}"] = {"found": signature, "expected": plain[name]}


import torch_npu

compare("after import torch_npu")
import torch._dynamo

compare("after Dynamo setup")
probe.check(not changed, "the signatures of torch's entry functions stay", **changed)
