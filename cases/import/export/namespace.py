"""A function that somebody has put among torch.ops' namespaces breaks neither Inductor's import nor export's tables.

Old packages set plain functions on torch.ops. torch's collection of operators for export walks all names there; on the
torch of the 2.7 line it fell over them, which showed as a crash of `import transfer_to_npu`.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe


def not_a_namespace():
    return None


torch.ops.conformance_function = not_a_namespace
torch.ops._dir.append("conformance_function")
import torch._inductor.compile_fx
from torch._export.utils import _collect_all_valid_cia_ops

probe.check(torch.ops.aten.matmul.default in _collect_all_valid_cia_ops(), "composite operators are collected")
exported = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)).run_decompositions()
probe.equal(exported.module()(torch.ones(1, 2)).shape, (1, 2), "shape from an exported model")
probe.same(torch.ops.conformance_function, not_a_namespace, "the function")
