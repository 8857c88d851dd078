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

import torch
import torch_npu
from torch_npu.utils import _dynamo as npu_dynamo

NAME = "torch._dynamo"
finders = list(sys.meta_path)


def ask():
    return importlib.util.find_spec(NAME)


def ask_every_finder_by_hand():
    specs = [finder.find_spec(NAME, torch.__path__, None) for finder in finders]
    return next(spec for spec in specs if spec is not None)


def ask_from_a_thread():
    return probe.thread(ask).join()


# A look-up that changes nothing leaves the same question to the next one, so all of them share the process.
wrong = {}
looks = {"find_spec": ask, "again": ask, "every_finder_by_hand": ask_every_finder_by_hand, "thread": ask_from_a_thread}
for how, look in looks.items():
    spec = look()
    seen = {
        "spec with a loader": spec is not None and spec.loader is not None,
        "setup has run": npu_dynamo._lazy_dynamo_setup.has_run,
        "finders in place": [id(f) for f in sys.meta_path] == [id(f) for f in finders],
    }
    if seen != {"spec with a loader": True, "setup has run": False, "finders in place": True}:
        wrong[how] = seen
probe.check(not wrong, "a look-up finds a loader, runs no Dynamo setup and leaves sys.meta_path as it is", **wrong)
probe.compilers_absent()
probe.device_untouched()
