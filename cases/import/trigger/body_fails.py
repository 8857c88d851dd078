"""When the body of torch._dynamo fails once, that import and the next one end as they do without torch_npu.

An interrupt or a missing file in the middle of Dynamo's own import is not the trigger's business: the error keeps its
type and text, and where plain torch can import Dynamo afterwards, so can torch_npu, with its setup run. The control is
the same process before `import torch_npu`; each try happens in a fork of its own.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 300
# releases = ">=2.7.1"
# ///

import importlib
import sys
from importlib.machinery import PathFinder

from harness import probe
from cases import _subject as subject

import torch


class FailingLoader:
    """Fails once, before or after the module's body has run."""

    failed = False

    def __init__(self, inner, error, moment):
        self.inner, self.error, self.moment = inner, error, moment

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        if self.moment == "at_the_end" or FailingLoader.failed:
            self.inner.exec_module(module)
        if not FailingLoader.failed:
            FailingLoader.failed = True
            raise self.error("the body's own message")


class Finder:
    def __init__(self, error, moment):
        self.error, self.moment = error, moment

    def find_spec(self, name, path=None, target=None):
        if name != "torch._dynamo":
            return None
        spec = PathFinder.find_spec(name, path, target)
        spec.loader = FailingLoader(spec.loader, self.error, self.moment)
        return spec


def try_import():
    try:
        importlib.import_module("torch._dynamo")
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    if "torch_npu" in sys.modules and not subject.dynamo_setup.has_run:
        return "imported, but NPU setup has not run"
    return "imported"


def outcome(error, moment):
    sys.meta_path.insert(sys.meta_path.index(PathFinder), Finder(error, moment))
    # The next import after a failure, and one more: what is in sys.modules must be whole.
    return [try_import(), try_import(), try_import()]


def ends_as_plain(*failure):
    probe.equal(probe.forked(outcome, *failure), plain[failure], "how three imports end, with NPU setup run")


FAILURES = ((ImportError, "at_the_start"), (KeyboardInterrupt, "at_the_start"), (RuntimeError, "at_the_end"))
plain = {failure: probe.forked(outcome, *failure) for failure in FAILURES}
probe.equal(plain[FAILURES[0]][1], "imported", "second import on plain torch")
import torch_npu

probe.each(FAILURES, ends_as_plain)
