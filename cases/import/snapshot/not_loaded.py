"""`import torch_npu` loads no optional compiler and no native AFD module, and hides the operator docs module.

`torch_npu._op_plugin_docs` attaches documentation to operators as it is imported; it is loaded but is no part of the
namespace.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys

import torch_npu
from harness import probe

probe.modules.absent(
    "torch_npu._C._afd", "torch_npu._inductor", "torch_npu.dynamo.torchair", "torch_npu.contrib.transfer_to_npu"
)
probe.check("torch_npu._op_plugin_docs" in sys.modules, "torch_npu._op_plugin_docs is loaded")
probe.check(not hasattr(torch_npu, "_op_plugin_docs"), "torch_npu has no attribute _op_plugin_docs")
probe.check("_op_plugin_docs" not in dir(torch_npu), "dir(torch_npu) does not list _op_plugin_docs")
probe.check(bool(torch_npu.npu_rotary_mul.__doc__), "an operator of torch_npu carries documentation")
