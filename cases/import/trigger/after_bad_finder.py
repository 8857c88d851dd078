"""When a finder has made the import of torch._dynamo fail and is gone, the next import works and NPU setup runs.

A failed look-up must leave no trace: the trigger stays armed, in its place, and no half-made module remains.
Otherwise one hiccup of an unrelated import hook costs the process its NPU support.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys
from importlib.machinery import PathFinder

from harness import probe

import torch
import torch_npu
from torch_npu.utils import _dynamo as npu_dynamo


class Failing:
    def __init__(self, error):
        self.error = error

    def find_spec(self, name, *_):
        if name == "torch._dynamo":
            raise self.error("not today")


def outcome_of_import():
    try:
        import torch._dynamo
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "imported"


before = list(sys.meta_path)
wrong = {}
for error in (ImportError, RuntimeError, KeyboardInterrupt):
    for place, index in (("front", 0), ("behind", before.index(PathFinder))):
        finder = Failing(error)
        sys.meta_path.insert(index, finder)
        outcome = outcome_of_import()
        sys.meta_path.remove(finder)
        in_order = [id(f) for f in sys.meta_path] == [id(f) for f in before]
        loaded = "torch._dynamo" in sys.modules
        if (outcome, in_order, loaded) != (f"{error.__name__}: not today", True, False):
            wrong[f"{error.__name__} in {place}"] = {"outcome": outcome, "finders": in_order, "loaded": loaded}
probe.check(not wrong, "a failed import says why, leaves the finders in order and no module behind", **wrong)
probe.modules.absent("torch_npu._inductor")

import torch._dynamo

probe.check(npu_dynamo._lazy_dynamo_setup.has_run, "NPU setup has run after the second import")
