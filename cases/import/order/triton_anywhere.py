"""Triton may be imported before torch, before torch_npu, or last: its backends, target and cache key are the same.

Kernel libraries import Triton first of all. An Ascend backend that is left out in one order, or a key that differs
between a process and its workers, makes kernels for nothing, or compiles each of them again in every process.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["triton", "kernels"]
# timeout = 400
# releases = ">=2.9"
# ///

import json

from harness import probe

ORDERS = (
    ("torch", "torch_npu", "torch._dynamo", "triton"),
    ("triton", "torch", "torch_npu"),
    ("torch", "triton", "torch._dynamo", "torch_npu"),
    ("triton", "torch_npu"),
)
TELL = """
import json, sys
import torch, triton
import triton.backends
from triton.runtime import driver
from triton.compiler.compiler import triton_key
from harness import probe
from cases import _subject as subject

compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
print(json.dumps({
    "backends": sorted(triton.backends.backends),
    "target": str(driver.active.get_current_target()),
    "key": triton_key(),
    "has_triton": torch.utils._triton.has_triton(),
    "setup has run": subject.dynamo_setup.has_run,
    "NPU Inductor is loaded": "torch_npu._inductor" in sys.modules,
    "compiled x + 1": compiled(torch.ones(2)).tolist(),
}))
"""


def told(order):
    done = probe.python("".join(f"import {name}\n" for name in order) + TELL, timeout=120)
    return json.loads(done.stdout.splitlines()[-1])


first = told(ORDERS[0])
probe.check(first["backends"], "Triton has a backend", found=first["backends"])
probe.check("npu" in first["target"], "Triton's target is the NPU", found=first["target"])
expected = {"setup has run": True, "NPU Inductor is loaded": False, "compiled x + 1": [2.0, 2.0], "has_triton": True}
probe.equal({name: first[name] for name in expected}, expected, "what the first order ends in")
probe.each(ORDERS[1:], lambda *order: probe.equal(told(order), first, "what the order ends in"))
