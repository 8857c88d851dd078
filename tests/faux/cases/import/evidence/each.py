"""Each kind of evidence alone sees what it is there to see.

Fakes that fool all kinds but one show that none is superfluous.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { kind = ["table", "record", "all_evidence", "libraries", "calls"] }
# timeout = 30
# ///

import torch  # noqa: F401
import torch_npu  # noqa: F401

from harness import probe

kind = probe.param("kind")
if kind == "table":
    probe.check("torch._dynamo" not in probe.modules.loaded(), "sys.modules has no Dynamo")
elif kind == "record":
    probe.equal(probe.modules.importer("torch._dynamo"), None, "who imported Dynamo")
elif kind == "all_evidence":
    probe.modules.absent("torch._dynamo")
elif kind == "libraries":
    probe.libraries.absent("libopapi")
else:
    probe.check("aclrtSetDevice" not in probe.device_calls(), "no device was set", calls=probe.device_calls())
