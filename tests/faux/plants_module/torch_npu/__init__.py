"""Puts a ready-made Dynamo into sys.modules: no body of it is ever executed."""

import sys
import types

__version__ = "2.99.0"

sys.modules["torch._dynamo"] = types.ModuleType("torch._dynamo")
