"""An odd finder in sys.meta_path has the effect on `import torch._dynamo` that it has without torch_npu.

Some finders predate find_spec, some raise, some look other names up while they answer. Whatever Python makes of them,
the trigger must not turn it into another error, swallow it, or recurse. The control is the same process before
`import torch_npu`; each import happens in a fork of its own.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 360
# releases = ">=2.7.1"
# ///

import importlib.util
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
warnings.simplefilter("ignore")  # Python warns about a finder without find_spec

from harness import probe

import torch


class WithoutFindSpec:
    pass


class Raises:
    error: type[Exception]

    def find_spec(self, name, *_):
        if name == "torch._dynamo":
            raise self.error("the finder's own message")


class RaisesImportError(Raises):
    error = ImportError


class RaisesKeyError(Raises):
    error = KeyError


class LooksUpAgain:
    busy = False

    def find_spec(self, name, *_):
        if name != "torch._dynamo" or self.busy:
            return None
        self.busy = True
        try:
            return importlib.util.find_spec(name)
        finally:
            self.busy = False


class AsksTheOthers:
    """Goes through sys.meta_path itself. A trigger that asks all others in turn must not come back to it for ever."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch._dynamo":
            return None
        for other in list(sys.meta_path):
            if other is not self and hasattr(other, "find_spec"):
                spec = other.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


def outcome(kind, place):
    sys.meta_path.insert(0 if place == "front" else len(sys.meta_path) - 1, kind())
    try:
        import torch._dynamo
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if "torch_npu" not in sys.modules:
        return "imported, NPU setup has run: True"  # what it must say with torch_npu
    return f"imported, NPU setup has run: {sys.modules['torch_npu.utils._dynamo']._lazy_dynamo_setup.has_run}"


def outcomes():
    found = {}
    for kind in (WithoutFindSpec, RaisesImportError, RaisesKeyError, LooksUpAgain, AsksTheOthers):
        for place in ("front", "behind"):
            with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
                found[f"{kind.__name__} in {place}"] = pool.submit(outcome, kind, place).result()
    return found


plain = outcomes()
import torch_npu

with_npu = outcomes()
wrong = {name: {"found": with_npu[name], "expected": plain[name]} for name in plain if with_npu[name] != plain[name]}
probe.check(not wrong, "`import torch._dynamo` ends as on plain torch, with NPU setup run if it succeeds", **wrong)
