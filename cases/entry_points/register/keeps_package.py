"""A npugraph_ex that the user has imported stays the one in sys.modules, whatever is set up or registered later.

Importing the package loads Dynamo, and so runs setup in the middle of the import. If registration then puts a new,
unloaded stand-in under the name, two modules of one name exist: what is set on the user's one (a patched pass, a
handler) is not seen by the other.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { then = ["use", "register"], dynamo = ["loaded", "not_loaded"] }
# timeout = 60
# releases = ">=2.10"
# ///

import importlib
import sys

import torch
import torch_npu.dynamo
from harness import probe
from cases import _subject as subject

if probe.param("dynamo") == "loaded":
    import torch._dynamo

import npugraph_ex

npugraph_ex.mark_of_the_user = mark = object()
steps = {
    "import_again": lambda: importlib.import_module("torch._dynamo"),
    "compile": lambda: torch.compile(lambda x: x, backend="npugraph_ex"),
    "register": subject.register_backends,
}


def keeps(step):
    steps[step]()
    probe.same(sys.modules["npugraph_ex"], npugraph_ex, "npugraph_ex in sys.modules")
    again = importlib.import_module("npugraph_ex")
    probe.same(again, npugraph_ex, "npugraph_ex imported again")
    probe.same(getattr(again, "mark_of_the_user", None), mark, "the attribute that the user has set")


probe.each(["import_again", "compile"] if probe.param("then") == "use" else ["register"], keeps)
