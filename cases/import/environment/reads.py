"""os.getenv and os.environ.get answer as Python's own do after `import torch_npu`, whether or not it logs what is read.

torch_npu can log each variable the process reads, and replaces the two functions to that end. Every library in the
process then calls the replacements: a default that is dropped or an empty value that is taken for a missing one
breaks programs that have nothing to do with NPUs.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { logs = ["off", "on"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import os

from harness import probe

if probe.param("logs") == "on":
    os.environ["TORCH_NPU_LOGS"] = "env"
import torch_npu

missing = object()
os.environ["PROBE_VALUE"], os.environ["PROBE_EMPTY"] = "value", ""
os.environ.pop("PROBE_MISSING", None)
for name, get in (("os.getenv", os.getenv), ("os.environ.get", os.environ.get)):
    probe.equal(get("PROBE_VALUE"), "value", f"{name} of a set variable")
    probe.equal(get("PROBE_EMPTY", "default"), "", f"{name} of an empty variable")
    probe.same(get("PROBE_MISSING"), None, f"{name} of a missing variable")
    probe.same(get("PROBE_MISSING", missing), missing, f"{name} of a missing variable with a default")
    probe.same(get("PROBE_MISSING", default=missing), missing, f"{name} with the default as a keyword")
    probe.equal(get(key="PROBE_VALUE"), "value", f"{name} with the name as a keyword")
    with probe.raises(TypeError):
        get(1)
os.environ["PROBE_VALUE"] = "changed"
probe.equal(os.getenv("PROBE_VALUE"), "changed", "os.getenv after a change")
probe.equal(os.environ.copy()["PROBE_VALUE"], "changed", "a copy of os.environ")
