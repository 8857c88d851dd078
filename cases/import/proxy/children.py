"""A child imported below the stand-in for npugraph_ex or torchair shows on the stand-in and on the real package.

The wheel carries both packages inside torch_npu and answers for their top-level names with light stand-ins. Users
write `from npugraph_ex.npu_fx_compiler import ...` and walk attributes from either name; a child bound to one of the
two only gives an AttributeError that depends on who imported first. Uses the private stand-in classes, since a
made-up package is the only one that surely has a child not loaded yet.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys
import types

import torch_npu.dynamo
from harness import probe
from cases import _subject as subject


def judge(name, stand_in_class, slot):
    package = types.ModuleType(f"torch_npu.dynamo.{name}")
    package.__path__ = []
    package.__spec__ = types.SimpleNamespace(name=package.__name__, submodule_search_locations=[], _initializing=False)
    child = types.ModuleType(f"{name}.npu_fx_compiler")
    child._optimize_fx = optimize_fx = object()

    stand_in = stand_in_class(name)
    setattr(stand_in, slot, package)  # as if the package had been loaded already
    sys.modules[name] = stand_in
    sys.modules[child.__name__] = child

    imported = __import__(name)
    probe.same(imported, stand_in, f"import {name}")
    probe.same(
        __import__(child.__name__, fromlist=["_optimize_fx"])._optimize_fx,
        optimize_fx,
        f"{name}: name imported from the child",
    )
    probe.same(imported.npu_fx_compiler, child, f"{name}: child as an attribute of the stand-in")
    probe.same(package.npu_fx_compiler, child, f"{name}: child as an attribute of the real package")

    # A package that tidies up after itself: the next look-up must repair both.
    vars(stand_in).pop("npu_fx_compiler", None)
    vars(package).pop("npu_fx_compiler", None)
    probe.check(hasattr(imported, "npu_fx_compiler"), f"{name}: the child is found again on the stand-in")
    probe.same(imported.npu_fx_compiler, child, f"{name}: child on the stand-in after repair")
    probe.same(package.npu_fx_compiler, child, f"{name}: child on the real package after repair")
    with probe.raises(AttributeError):
        imported.no_such_child  # noqa: B018


judge("npugraph_ex", subject.proxy_of_npugraph_ex, "_npugraph_ex")
judge("torchair", subject.proxy_of_torchair, "_torchair")
