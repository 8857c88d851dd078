"""When a finder has made the import of torch._dynamo fail and is gone, the next import works and NPU setup runs.

A failed look-up must leave no trace: the trigger stays armed, in its place, and no half-made module remains.
Otherwise one hiccup of an unrelated import hook costs the process its NPU support.
"""

# /// script
# [tool.conformance]
# rule = "import/trigger/11"
# level = "must"
# matrix = { error = ["ImportError", "RuntimeError", "KeyboardInterrupt"], place = ["front", "behind"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import builtins
import sys
from importlib.machinery import PathFinder

from harness import probe

import torch
import torch_npu
from torch_npu.utils import _dynamo as npu_dynamo

Error = getattr(builtins, probe.param("error"))


class Failing:
    def find_spec(self, name, *_):
        if name == "torch._dynamo":
            raise Error("not today")


before = list(sys.meta_path)
finder = Failing()
sys.meta_path.insert(0 if probe.param("place") == "front" else sys.meta_path.index(PathFinder), finder)
with probe.raises(Error, match="not today"):
    import torch._dynamo
sys.meta_path.remove(finder)
probe.equal([id(f) for f in sys.meta_path], [id(f) for f in before], "finders after the failed import, in order")
probe.modules.absent("torch_npu._inductor")

import torch._dynamo

probe.check(npu_dynamo._lazy_dynamo_setup.has_run, "NPU setup has run after the second import")
