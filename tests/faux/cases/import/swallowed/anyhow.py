"""A failed check counts even if the judged package swallows its exception.

A broad except in the package must not hide what the case found.
"""

# /// script
# [tool.conformance]
# level = "must"
# ///

import torch_npu

from harness import probe

probe.check(True, "something holds")
torch_npu.call_safely(lambda: probe.check(torch_npu.__name__ == "torch", "torch_npu is called torch"))
