"""A case that needs what is not there is not judged.

The device of these tests has two devices and no kernels.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["devices>=3", "kernels", "python>=3.10"]
# ///

raise AssertionError("must never run")
