"""Each witness alone sees what it is there to see.

Fakes that fool all witnesses but one show that none is superfluous.
"""

# /// script
# [tool.conformance]
# rule = "import/witness/1"
# level = "must"
# matrix = { witness = ["table", "record", "all_evidence", "libraries", "calls"] }
# timeout = 30
# ///

import torch  # noqa: F401
import torch_npu  # noqa: F401

from harness import probe

witness = probe.param("witness")
if witness == "table":
    probe.check("torch._dynamo" not in probe.modules.loaded(), "sys.modules has no Dynamo")
elif witness == "record":
    probe.equal(probe.modules.importer("torch._dynamo"), None, "who imported Dynamo")
elif witness == "all_evidence":
    probe.modules.absent("torch._dynamo")
elif witness == "libraries":
    probe.libraries.absent("libopapi")
else:
    probe.check("aclrtSetDevice" not in probe.device_calls(), "no device was set", calls=probe.device_calls())
