"""A compiled function that is the first to use a part of torch_npu warns of what that part does, and of nothing else.

What loads a part with its first use is Python code, which Dynamo meets like the program's own when it has left a graph.
If it tries to compile that, the user reads of builtins of which no line of the program speaks, or gets an error where
warnings are errors.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["kernels"]
# timeout = 120
# releases = ">=2.13"  # where these names of torch warn that they are old
# ///

import warnings

import torch
import torch_npu
from harness import probe


def program(x):
    return torch.nn.functional.dropout_with_byte_mask(x, 0.0, True)  # type: ignore[attr-defined]


given = torch.ones(8, device="npu")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    result = torch.compile(program, backend="eager")(given)
said = [str(each.message) for each in caught]
probe.close(result, given, "the compiled function's result")
probe.check(any("dropout_with_byte_mask is deprecated" in each for each in said), "the old name warns", warnings=said)
probe.equal([each for each in said if "is deprecated" not in each], [], "what else was warned of")
