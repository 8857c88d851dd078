"""The Dynamo trigger looks its setup function up by name when it fires, and calls it exactly once.

Downstream projects wrap `torch_npu.utils._dynamo._lazy_dynamo_setup` to add steps of their own (profilers, vendored
backends). A trigger that kept a reference from import time would pass their wrapper by without a word.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { route = ["dynamo", "compile"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

original = subject.dynamo_setup
calls = []


@subject.run_once
def counted_setup():
    calls.append("setup")
    original()


subject.replace("dynamo_setup", counted_setup)

match probe.param("route"):
    case "dynamo":
        import torch._dynamo.backends.registry
    case "compile":
        torch.compile(lambda x: x, backend="eager")

probe.equal(counted_setup.has_run, True, "the replaced setup has run")
compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.tensor(1)), torch.tensor(2), "compiled x + 1")
probe.equal(calls, ["setup"], "calls of the replaced setup function")
probe.equal(original.has_run, True, "the original setup has run through the replacement")
