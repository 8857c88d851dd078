"""Makes an interpreter, and all that it starts, take the installed Triton for absent, or for another distribution.

Stands on PYTHONPATH while a case has asked for it (probe.triton); HARNESS_TRITON says which of the two. The
entries that find packages stay in place: a case may look at sys.meta_path.
"""

import sys

# Both are loaded in every interpreter; their public names would import importlib.
from _frozen_importlib import module_from_spec
from _frozen_importlib_external import PathFinder

_HERE = __file__.rpartition("/")[0]


def hide(how):
    """`absent`: no package and no distribution; `community`: those of the directory beside this one."""
    find_spec, find_distributions = PathFinder.find_spec, PathFinder.find_distributions
    community = [f"{_HERE.rpartition('/')[0]}/community"]
    hidden = {"triton_ascend"} if how == "community" else {"triton_ascend", "triton"}

    def find(cls, fullname, path=None, target=None):  # noqa: ARG001 - a class method's
        if fullname == "triton":
            return None if how == "absent" else find_spec(fullname, community, target)
        return find_spec(fullname, path, target)

    def distributions(*arguments, **named):
        for one in find_distributions(*arguments, **named):
            if (one.metadata["Name"] or "").lower().replace("-", "_") not in hidden:
                yield one

    PathFinder.find_spec = classmethod(find)  # pyright: ignore[reportAttributeAccessIssue]
    PathFinder.find_distributions = staticmethod(distributions)


if __name__ == "sitecustomize":
    from os import environ

    if environ.get("HARNESS_TRITON"):
        hide(environ["HARNESS_TRITON"])
    # The sitecustomize that this one hides.
    _next = PathFinder.find_spec("sitecustomize", sys.path[sys.path.index(_HERE) + 1 :] if _HERE in sys.path else [])
    if _next is not None and _next.loader is not None:
        _module = sys.modules["sitecustomize"] = module_from_spec(_next)
        _next.loader.exec_module(_module)
