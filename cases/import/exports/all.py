"""Every name in `torch_npu.__all__` can be had: as an attribute, through dir() and by star import.

Tools and documentation builders trust `__all__`. A listed name that is not there makes `from torch_npu import *` fail
as a whole.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch_npu
from harness import probe

names = torch_npu.__all__
probe.check(
    {"HiFloat8Tensor", "erase_stream", "matmul_checksum"} <= set(names), "the three Python interfaces are listed"
)
probe.check({"npu_rotary_mul", "npu_fusion_attention", "npu_format_cast"} <= set(names), "operators are listed")
for name in names:
    probe.check(hasattr(torch_npu, name), f"torch_npu.{name} is there")
probe.equal(sorted(set(names) - set(dir(torch_npu))), [], "names of __all__ that dir() leaves out")
namespace = {}
exec("from torch_npu import *", namespace)
probe.equal(sorted(set(names) - namespace.keys()), [], "names of __all__ that a star import leaves out")
probe.equal([name for name in names if namespace[name] is not getattr(torch_npu, name)], [], "names that differ")
probe.compilers_absent()
probe.device_untouched()
