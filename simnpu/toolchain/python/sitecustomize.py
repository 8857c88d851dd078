"""Gives triton-ascend on the simulated NPU what torch_npu expects of a newer one, without a change of the wheel: the
package `triton.language.extra.cann`, and kernels that say whether they are SIMT kernels.

simnpu.environ() puts this directory on PYTHONPATH, so every interpreter runs this at start: it must import nothing.
"""

import sys

# Both are loaded in every interpreter; their public names would import importlib.
from _frozen_importlib import module_from_spec
from _frozen_importlib_external import PathFinder, SourceFileLoader

_HERE = __file__.rpartition("/")[0]
_EXTRA = f"{_HERE.rpartition('/')[0]}/extra"


class _Backends(SourceFileLoader):
    """Loads triton.backends, and adds to the options of kernels, which become their metadata, `is_pure_simt`: an
    ahead-of-time compile of torch_npu writes it down."""

    def exec_module(self, module):
        super().exec_module(module)
        for backend in module.backends.values():
            options = backend.compiler.parse_options.__globals__.get("NPUOptions")
            if options is not None and "is_pure_simt" not in options.__dataclass_fields__:
                options.__post_init__ = self.completing(options.__post_init__)

    @staticmethod
    def completing(post_init):
        def __post_init__(self):
            post_init(self)
            object.__setattr__(self, "is_pure_simt", self.force_simt_only)

        return __post_init__


class _Completed:
    """Finds two packages as usual. To one it adds our directory to those in which its subpackages are looked up, to the
    other the loader above."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in {"triton.language.extra", "triton.backends"}:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.submodule_search_locations is None:
            return spec
        if name == "triton.backends":
            if type(spec.loader) is SourceFileLoader:
                spec.loader = _Backends(name, spec.loader.path)
        # Newer wheels bring a package of that name, and theirs is the better one.
        elif PathFinder.find_spec(f"{name}.cann", spec.submodule_search_locations) is None:
            spec.submodule_search_locations.append(_EXTRA)
        return spec


sys.meta_path.insert(sys.meta_path.index(PathFinder), _Completed)


# The sitecustomize that this one hides, if there is one: further behind, where another that does the same goes on.
# The entries of sys.path are absolute by now, each there once.
_next = PathFinder.find_spec("sitecustomize", sys.path[sys.path.index(_HERE) + 1 :] if _HERE in sys.path else [])
if _next is not None and _next.loader is not None:
    # It takes this one's place, and what it raises goes to the interpreter, as if it had been found at once.
    _module = sys.modules["sitecustomize"] = module_from_spec(_next)
    _next.loader.exec_module(_module)
