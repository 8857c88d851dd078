"""Importing torch_npu loads no compiler and leaves the device alone.

The rule that most fakes break in one way or another.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 30
# ///

import torch  # noqa: F401
import torch_npu  # noqa: F401

from harness import probe

probe.compilers_absent()
probe.device_untouched()
