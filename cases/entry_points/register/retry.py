"""A registration that failed between two backends is completed by the next one, without a duplicate.

Looks at torch's two tables, since a half-done registration has no other face. The first backend stays usable
meanwhile.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch._dynamo
import torch_npu.dynamo
from harness import probe
from cases import _subject as subject
from torch._dynamo.backends import registry

for name in ("npu", "npugraph_ex"):
    registry._BACKENDS.pop(name, None)
    registry._COMPILER_FNS.pop(name, None)

real = torch._dynamo.register_backend
failures = []


def fail_once(function, name=None, tags=()):
    if name == "npugraph_ex" and not failures:
        failures.append(name)
        raise RuntimeError("made to fail once")
    return real(function, name, tags)


torch._dynamo.register_backend = fail_once
with probe.raises(RuntimeError, match="made to fail once"):
    subject.register_backends()
probe.check("npu" in registry._COMPILER_FNS, "npu is registered after the failure")
probe.check("npugraph_ex" not in registry._COMPILER_FNS, "npugraph_ex is not registered after the failure")
first = registry._COMPILER_FNS["npu"]

subject.register_backends()
probe.same(registry._COMPILER_FNS["npu"], first, "npu after the second try")
second = registry._COMPILER_FNS.get("npugraph_ex")
probe.check(callable(second), "npugraph_ex is registered after the second try", backend=second)
probe.same(registry.lookup_backend("npugraph_ex"), second, "npugraph_ex looked up")
probe.equal(failures, ["npugraph_ex"], "failures")
