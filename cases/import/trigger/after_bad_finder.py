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

import itertools
import sys
from importlib.machinery import PathFinder

from harness import probe
from cases import _subject as subject

import torch
import torch_npu


class Failing:
    def __init__(self, error):
        self.error = error

    def find_spec(self, name, *_):
        if name == "torch._dynamo":
            raise self.error("not today")


def import_fails(error, place):
    finder = Failing(error)
    sys.meta_path.insert(0 if place == "in front" else before.index(PathFinder), finder)
    with probe.raises(error, "not today"):
        import torch._dynamo
    sys.meta_path.remove(finder)
    probe.check([*map(id, sys.meta_path)] == [*map(id, before)], "the finders are in order")
    probe.check("torch._dynamo" not in sys.modules, "no module is left behind")


before = list(sys.meta_path)
errors = (ImportError, RuntimeError, KeyboardInterrupt)
probe.each(itertools.product(errors, ("in front", "behind")), import_fails)
probe.modules.absent("torch_npu._inductor")

import torch._dynamo

probe.check(subject.dynamo_setup.has_run, "NPU setup has run after the second import")
