"""A npugraph_ex that the user has imported stays the one in sys.modules, whatever is set up or registered later.

Importing the package loads Dynamo, and so runs setup in the middle of the import. If registration then puts a new,
unloaded stand-in under the name, two modules of one name exist: what is set on the user's one (a patched pass, a
handler) is not seen by the other.
"""

# /// script
# [tool.conformance]
# rule = "entry_points/register/2"
# level = "must"
# matrix = { then = ["import_again", "compile", "register"], dynamo = ["loaded", "not_loaded"] }
# timeout = 60
# releases = ">=2.10"
# ///

import importlib
import sys

import torch
import torch_npu.dynamo
from harness import probe

if probe.param("dynamo") == "loaded":
    import torch._dynamo

import npugraph_ex

npugraph_ex.mark_of_the_user = mark = object()
match probe.param("then"):
    case "import_again":
        import torch._dynamo
    case "compile":
        torch.compile(lambda x: x, backend="npugraph_ex")
    case "register":
        torch_npu.dynamo._register_backends()

probe.same(sys.modules["npugraph_ex"], npugraph_ex, "npugraph_ex in sys.modules")
again = importlib.import_module("npugraph_ex")
probe.same(again, npugraph_ex, "npugraph_ex imported again")
probe.same(again.mark_of_the_user, mark, "attribute that the user has set")
