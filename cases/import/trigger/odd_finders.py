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
import itertools
import sys
import warnings

warnings.simplefilter("ignore")  # Python warns about a finder without find_spec

from harness import probe
from cases import _subject as subject

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
    sys.meta_path.insert(0 if place == "in front" else len(sys.meta_path) - 1, kind())
    try:
        import torch._dynamo
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"imported, NPU setup has run: {'torch_npu' not in sys.modules or subject.dynamo_setup.has_run}"


def ends_as_plain(*finder):
    probe.equal(probe.forked(outcome, *finder), plain[finder], "how the import ends, with NPU setup run if it succeeds")


KINDS = (WithoutFindSpec, RaisesImportError, RaisesKeyError, LooksUpAgain, AsksTheOthers)
finders = list(itertools.product(KINDS, ("in front", "behind")))
plain = {finder: probe.forked(outcome, *finder) for finder in finders}
import torch_npu

probe.each(finders, ends_as_plain)
