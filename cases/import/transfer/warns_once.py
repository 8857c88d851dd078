"""transfer_to_npu says once what it replaces, and leaves the program's warning filters as they are.

The filters belong to the program: a test suite that turns warnings into errors, or a service that silences them, must
not change its behaviour because of an import in some module.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = { about = ["message", "filters"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib
import warnings

from harness import probe

import torch
import torch_npu
import torch._inductor.compile_fx  # their own imports may touch the filters
import torch.utils.cpp_extension

with warnings.catch_warnings(record=True) as shown:
    warnings.simplefilter("always")
    filters = list(warnings.filters)
    from torch_npu.contrib import transfer_to_npu

    importlib.import_module("torch_npu.contrib.transfer_to_npu")
    after = list(warnings.filters)
told = [each for each in shown if "torch.Tensor.cuda" in str(each.message)]
if probe.param("about") == "message":
    probe.equal(len(told), 1, "warnings that name what is replaced")
    probe.check(issubclass(told[0].category, ImportWarning), "it is an ImportWarning", category=told[0].category)
else:
    probe.equal(after, filters, "warning filters after the import")
