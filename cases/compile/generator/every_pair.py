"""A code generator is chosen as in a fresh process, whichever one was there before it, and whether or not that worked.

A service compiles one model with this generator and the next with that one, and tries again with the first when the
second fails. What the one before has left in Inductor's tables makes the next one fail, or compile differently.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { pair = ["default-mlir", "default-dvm", "mlir-default", "mlir-dvm", "dvm-default", "dvm-mlir"] }
# needs = ["ops", "triton", "kernels"]
# timeout = 300
# releases = ">=2.13"
# ///

import json

from harness import probe

PROGRAM = """
import json, sys, warnings

warnings.simplefilter("ignore")
import torch
import torch_npu

x = torch.linspace(-2, 2, 64)
expected = torch.erfc(x) + torch.nn.functional.gelu(x)


def outcome(generator):
    torch._dynamo.reset()
    try:
        compiled = torch.compile(
            lambda x: torch.erfc(x) + torch.nn.functional.gelu(x), options={"npu_backend": generator}
        )
        return "right" if torch.allclose(compiled(x.npu()).cpu(), expected, atol=1e-5) else "wrong"
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]


for generator in sys.argv[1:]:
    found = outcome(generator)
from torch._inductor.decomposition import decompositions



def name(function):
    function = getattr(function, "func", function)  # of a partial
    return f"{function.__module__}.{function.__qualname__}"


table = {str(operator): name(each) for operator, each in decompositions.items()}
print(json.dumps({"outcome": found, "decompositions": table}))
"""


def last_of(*generators):
    return json.loads(probe.python(PROGRAM, *generators).stdout.splitlines()[-1])


first, then = probe.param("pair").split("-")
fresh, after = last_of(then), last_of(first, then)
probe.note("in a fresh process", fresh["outcome"])
probe.equal(after["outcome"], fresh["outcome"], f"what {then} does after {first}")
changed = {
    operator: (fresh["decompositions"].get(operator), after["decompositions"].get(operator))
    for operator in {**fresh["decompositions"], **after["decompositions"]}
    if fresh["decompositions"].get(operator) != after["decompositions"].get(operator)
}
probe.equal(changed, {}, "decompositions, in a fresh process and here")
