"""Asking whether torch._dynamo exists changes nothing: no setup, no module, no move in sys.meta_path.

`importlib.util.find_spec("torch._dynamo")` is how libraries test for a feature without paying for it. A trigger that
runs the setup, or takes itself out of sys.meta_path and comes back elsewhere, makes a harmless question expensive or
racy.
"""

# /// script
# [tool.conformance]
# rule = "import/trigger/5"
# level = "must"
# matrix = { how = ["importlib.util.find_spec", "twice", "every_finder_by_hand", "from_a_thread"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib.util
import sys
import threading

from harness import probe

import torch
import torch_npu
from torch_npu.utils import _dynamo as npu_dynamo

NAME = "torch._dynamo"
how = probe.param("how")
finders = list(sys.meta_path)
answers = []


def ask():
    answers.append(importlib.util.find_spec(NAME))


if how == "every_finder_by_hand":
    specs = [finder.find_spec(NAME, torch.__path__, None) for finder in finders]
    answers.append(next(spec for spec in specs if spec is not None))
elif how == "from_a_thread":
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
else:
    ask()
    if how == "twice":
        ask()

for spec in answers:
    probe.check(spec is not None and spec.loader is not None, "the spec found for Dynamo carries a loader")
probe.check(not npu_dynamo._lazy_dynamo_setup.has_run, "a look-up does not run the Dynamo setup")
probe.equal([id(f) for f in sys.meta_path], [id(f) for f in finders], "finders in sys.meta_path, in order")
probe.compilers_absent()
probe.device_untouched()
