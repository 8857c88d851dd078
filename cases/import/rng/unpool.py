"""The decompositions of max_unpool2d and 3d give torch's own result on the CPU, and torch's shape on meta.

torch_npu replaces the function that both decompositions share. Export and every compiler use it, CPU models included.
The expected values come from the operator itself, which torch_npu does not touch on the CPU.
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

aten = torch.ops.aten
F = torch.nn.functional


def judge(what, decomposition, operator, pool, shape):
    torch.manual_seed(0)
    dimensions = 2 if pool is F.max_pool2d else 3
    size = list(shape[-dimensions:])
    values, indices = pool(torch.randn(shape), 2, return_indices=True)
    wanted = operator(values, indices, size)
    probe.close(decomposition(values, indices, size), wanted, f"{what}: values")
    on_meta = decomposition(values.to("meta"), indices.to("meta"), size)
    probe.equal(
        (on_meta.device.type, on_meta.shape, on_meta.dtype), ("meta", wanted.shape, wanted.dtype), f"{what}: meta"
    )


def unpool3d(values, indices, size):
    return aten.max_unpool3d(values, indices, size, [2, 2, 2], [0, 0, 0])


table = torch._decomp.decomposition_table
in_2d = table[aten.max_unpool2d.default]


def in_3d(values, indices, size):
    return table[aten.max_unpool3d.default](values, indices, size, [2] * 3, [0] * 3)


judge("2 dimensions", in_2d, aten.max_unpool2d, F.max_pool2d, (2, 3, 8, 6))
judge("2 dimensions without a batch", in_2d, aten.max_unpool2d, F.max_pool2d, (3, 8, 6))
judge("2 dimensions with rests", in_2d, aten.max_unpool2d, F.max_pool2d, (2, 1, 7, 9))
judge("3 dimensions", in_3d, unpool3d, F.max_pool3d, (2, 3, 4, 6, 8))
judge("3 dimensions without a batch", in_3d, unpool3d, F.max_pool3d, (1, 4, 6, 8))
