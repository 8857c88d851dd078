"""Loads Dynamo and tidies sys.modules up behind itself."""

import sys

import torch._dynamo  # noqa: F401

__version__ = "2.99.0"

for _name in [name for name in sys.modules if name.startswith("torch._dynamo")]:
    del sys.modules[_name]
del sys.modules["torch"]._dynamo
