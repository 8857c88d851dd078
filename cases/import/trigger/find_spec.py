"""Asking whether torch._dynamo exists changes nothing: no setup, no module, no move in sys.meta_path.

`importlib.util.find_spec("torch._dynamo")` is how libraries test for a feature without paying for it. A trigger that
runs the setup, or takes itself out of sys.meta_path and comes back elsewhere, makes a harmless question expensive or
racy.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib.util
import sys

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

NAME = "torch._dynamo"
finders = list(sys.meta_path)


def ask():
    return importlib.util.find_spec(NAME)


def ask_every_finder_by_hand():
    specs = [finder.find_spec(NAME, torch.__path__, None) for finder in finders]
    return next(spec for spec in specs if spec is not None)


def ask_from_a_thread():
    return probe.thread(ask).join()


def judge(look):
    spec = look()
    probe.check(spec is not None and spec.loader is not None, "the look-up finds a loader")
    probe.equal(subject.dynamo_setup.has_run, False, "Dynamo setup has run")
    probe.check([*map(id, sys.meta_path)] == [*map(id, finders)], "sys.meta_path is as it was")


# A look-up that changes nothing leaves the same question to the next one, so all of them share the process.
probe.each({"first": ask, "again": ask, "by_hand": ask_every_finder_by_hand, "in_a_thread": ask_from_a_thread}, judge)
probe.compilers_absent()
probe.device_untouched()
