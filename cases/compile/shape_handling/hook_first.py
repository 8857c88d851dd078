"""With enable_shape_handling the hook that changes sizes is installed before a code generator that is loaded early.

mlir and dvm are loaded when the wrapper is made. Each generator's scope lies around the compile, the hook around
Dynamo's context: installed after the generator, it would belong to a compile and not to the function.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 60
# releases = ">=2.7.1"
# ///

from harness import probe
from cases import _subject as subject

subject.set_generator(None)

import torch
import torch_npu

if not subject.has_shape_handling():
    probe.unsupported("this release has no shape handling")

events = []
install = subject.shape_hook
subject.replace("shape_hook", lambda: (events.append("hook"), install())[0])
subject.fake_npu_inductor(on_load=lambda: events.append(subject.generator()))
torch._TorchCompileInductorWrapper("default", {"enable_shape_handling": True, "npu_backend": "dvm"}, None)
probe.equal(events, ["hook", "dvm"], "what making a wrapper for dvm does, in order")
probe.equal(subject.generator(), None, f"{subject.GENERATOR} afterwards")
