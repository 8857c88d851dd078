"""Gives triton-ascend the package `triton.language.extra.cann` on the simulated NPU, without a change of the wheel.

simnpu.environ() puts this directory on PYTHONPATH, so every interpreter runs this at start: it must import nothing.
"""

import sys

# Both are loaded in every interpreter; their public names would import importlib.
from _frozen_importlib import module_from_spec
from _frozen_importlib_external import PathFinder

_HERE = __file__.rpartition("/")[0]
_EXTRA = f"{_HERE.rpartition('/')[0]}/extra"


class _Cann:
    """Finds one package as usual, and adds our directory to those in which its subpackages are looked up."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "triton.language.extra":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.submodule_search_locations is None:
            return spec
        # Newer wheels bring a package of that name, and theirs is the better one.
        if PathFinder.find_spec(f"{name}.cann", spec.submodule_search_locations) is None:
            spec.submodule_search_locations.append(_EXTRA)
        return spec


sys.meta_path.insert(sys.meta_path.index(PathFinder), _Cann)


# The sitecustomize that this one hides, if there is one: further behind, where another that does the same goes on.
# The entries of sys.path are absolute by now, each there once.
_next = PathFinder.find_spec("sitecustomize", sys.path[sys.path.index(_HERE) + 1 :] if _HERE in sys.path else [])
if _next is not None and _next.loader is not None:
    # It takes this one's place, and what it raises goes to the interpreter, as if it had been found at once.
    _module = sys.modules["sitecustomize"] = module_from_spec(_next)
    _next.loader.exec_module(_module)
