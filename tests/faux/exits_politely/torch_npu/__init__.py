"""Says sys.exit(0) when it is imported."""

import sys

__version__ = "2.99.0"

sys.exit(0)
