"""Stands for the real Dynamo: heavy, and not to be loaded by an import of torch_npu."""

import sys
from collections import OrderedDict

BACKENDS: OrderedDict[str, str] = OrderedDict()
PLATFORM = sys.platform


def reset() -> None:
    BACKENDS.clear()
