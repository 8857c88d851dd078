"""Making a compiled function, without calling it, loads neither NPU Inductor nor Triton and leaves the device alone.

`torch.compile` as a decorator runs when a library is imported. Where triton-ascend is not installed such a library
must still import; only calling the function needs a kernel compiler.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { first = ["inductor", "callable"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

before = subject.generator()
backends = ["inductor", "eager", "aot_eager", "npugraph_ex", "npugraphs", lambda module, _: module.forward]
if probe.param("first") == "callable":
    backends.reverse()
for backend in backends:
    after = f"after a function for backend {backend}"
    probe.check(callable(torch.compile(lambda x: x + 1, backend=backend)), f"torch.compile gives a callable, {backend}")
    probe.equal(subject.dynamo_setup.has_run, True, f"Dynamo setup has run {after}")
    probe.equal(subject.inductor_setup.has_run, False, f"Inductor setup has run {after}")
    probe.equal(subject.inductor_is_loaded(), False, f"is_inductor_npu_initialized() {after}")
    probe.equal(subject.generator(), before, f"TORCHINDUCTOR_NPU_BACKEND {after}")
    probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree")
    probe.modules.left_to_torch("triton")
    probe.device_untouched()
