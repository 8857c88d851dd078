"""`from cases import _name`: what cases share lies beside them, in files that are no cases, and has that name in every
interpreter of a case, wherever the suite is and whatever else is on sys.path."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec

from ..protocol import SUITE


def bind() -> None:
    """Make the suite's directory the package `cases`. Bound by place, as `harness` is: were the name looked up on
    sys.path, the judged package could answer for it. Nothing is loaded until a case asks."""
    directory = os.environ.get(SUITE)
    if directory is not None:
        spec = ModuleSpec("cases", None, is_package=True)
        spec.submodule_search_locations = [directory]
        sys.modules["cases"] = module_from_spec(spec)
