"""Ships a package named harness, to judge itself."""

import torch._dynamo  # noqa: F401

__version__ = "2.99.0"
