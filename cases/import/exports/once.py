"""`torch_npu.__all__` lists each public name once.

Documentation generators and API-compatibility checkers iterate over the list and report a doubled name as a conflict.
"""

# /// script
# [tool.conformance]
# level = "should"
# timeout = 60
# releases = ">=2.7.1"
# ///

from collections import Counter

import torch_npu
from harness import probe

counts = Counter(torch_npu.__all__)
probe.equal(sorted(name for name, count in counts.items() if count > 1), [], "names listed more than once")
