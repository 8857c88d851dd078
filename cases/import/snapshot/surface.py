"""After `import torch_npu` torch.npu is the package's own module, and tensors, modules, storages have npu methods.

This is what every NPU program uses in its first lines. Two different modules behind torch.npu and torch_npu.npu would
mean two sets of device state.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys

import torch
import torch_npu
from harness import probe

probe.same(torch.npu, torch_npu.npu, "torch.npu")
probe.same(sys.modules["torch_npu.npu"], torch_npu.npu, "torch_npu.npu in sys.modules")
probe.same(torch.get_device_module("npu"), torch_npu.npu, "torch.get_device_module('npu')")
probe.equal(torch.device("npu:1").type, "npu", "type of torch.device('npu:1')")
probe.equal(torch._C._get_privateuse1_backend_name(), "npu", "name of the private backend")
for owner in (torch.Tensor, torch.nn.Module, torch.UntypedStorage, torch.TypedStorage):
    probe.check(callable(getattr(owner, "npu", None)), f"{owner.__name__}.npu is there")
for owner in (torch.Tensor, torch.UntypedStorage, torch.TypedStorage):
    probe.check(hasattr(owner, "is_npu"), f"{owner.__name__}.is_npu is there")
probe.same(torch.ones(1).is_npu, False, "is_npu of a CPU tensor")
probe.device_untouched()
