"""Without a kernel compiler the first call of an Inductor function fails, the second alike, and all else keeps working.

Machines without triton-ascend are common: developers' laptops, build machines, inference images. A failed compile there
must leave the environment, the other backends, eager code and compiled code for the CPU as they were.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "graph"]
# timeout = 240
# releases = ">=2.7.1"
# ///

import os

from harness import probe

# Installed or not: here it is not.
probe.triton("absent")

# One kernel for the CPU is compiled, which needs no workers.
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import torch
import torch_npu

x = torch.arange(4.0)
placed = x.npu()


def function(x):
    return x * 2 + 1


# Compiled C++ is no part of the rule; the header that would be compiled first takes longer than all the rest.
torch._inductor.config.cpp_cache_precompile_headers = False

compiled = torch.compile(function)
module = torch.compile(torch.nn.Linear(4, 2).npu())
before = dict(os.environ)
for attempt in ("first", "second"):
    for what, call in (("function", compiled), ("module", module)):
        with probe.raises(Exception) as caught:
            call(placed)
        probe.check(isinstance(caught.value, (RuntimeError, ImportError)), f"the {attempt} error is of a usual kind")
        for name in ("TORCHINDUCTOR_NPU_BACKEND", "TORCH_DEVICE_BACKEND_AUTOLOAD"):
            probe.equal(os.environ.get(name), before.get(name), f"{name} after the {attempt} call of the {what}")
        probe.close(function(placed), function(x), "eager code afterwards")
for backend in ("eager", "aot_eager", "npugraphs"):
    again = torch.compile(lambda x: function(x) - 3, backend=backend, fullgraph=True)
    for _ in range(2):
        probe.close(again(placed), function(x) - 3, f"result of backend {backend} afterwards")
with torch.compiler.set_stance("eager_on_recompile"):
    probe.close(function(placed), function(x), "eager code under a stance")
probe.close(torch.compile(lambda x: x.sin() + 2)(x), x.sin() + 2, "result of Inductor on the CPU afterwards")
