"""Tools that walk sys.modules work after `import torch_npu`, and start no compiler.

Each of these looks at modules it knows nothing about: inspect to find the module of a function, unittest to reset
warning registries, pickle to find where an object lives, the import system to tell whether a package exists.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { tools = ["find_spec_torchair", "find_spec_npugraph_ex", "others"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib.util
import inspect
import pickle
import sys
import traceback
import unittest
import warnings
from harness import probe

import torch
import torch_npu


def assert_warns():
    with unittest.TestCase().assertWarns(UserWarning):
        warnings.warn("on purpose", UserWarning, stacklevel=1)


def pickle_homeless():
    """An object without __module__ sends pickle through all modules in search of its name."""

    def homeless():
        pass

    homeless.__module__ = None
    homeless.__qualname__ = "not_to_be_found"
    with probe.raises(pickle.PicklingError):
        pickle.dumps(homeless)


def find(name):
    probe.check(importlib.util.find_spec(name) is not None, f"{name} can be imported")


def custom_op():
    def triple(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    torch.library.custom_op("conformance::triple", triple, mutates_args=())


def format_traceback():
    try:
        raise ValueError("on purpose")
    except ValueError:
        probe.check("on purpose" in traceback.format_exc(), "the traceback is formatted")


TOOLS = {
    "inspect.getmodule": lambda: probe.same(inspect.getmodule(torch.compile), torch, "module of torch.compile"),
    "inspect.stack": lambda: probe.check(len(inspect.stack()) > 0, "the stack has frames"),
    "unittest.assertWarns": assert_warns,
    "pickle": pickle_homeless,
    "find_spec_torchair": lambda: find("torchair"),
    "find_spec_npugraph_ex": lambda: find("npugraph_ex"),
    "torch.library.custom_op": custom_op,
    "warnings.warn": lambda: warnings.warn("on purpose", UserWarning, stacklevel=1),
    "traceback": format_traceback,
    "hasattr_file": lambda: [hasattr(module, "__file__") for module in list(sys.modules.values())],
}


def apply(name):
    TOOLS[name]()
    probe.compilers_absent()
    probe.device_untouched()


chosen = probe.param("tools")
others = [name for name in TOOLS if not name.startswith("find_spec")]
probe.each(others if chosen == "others" else [chosen], apply, forked=True)
