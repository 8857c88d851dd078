"""Backend npu without a loadable graph engine fails with the engine's true cause, each time, and Dynamo stays usable.

torchair needs libraries of CANN that a build machine lacks. The backend may then neither run eagerly without a word
nor leave a half-imported package that hides the cause at the second try.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { first = ["compile", "import"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

cause = probe.python(
    "import torch_npu\n"
    "try:\n"
    "    import torch_npu.dynamo.torchair\n"
    "    print('LOADED')\n"
    "except ImportError as error:\n"
    "    print('CAUSE', str(error).splitlines()[0])\n"
).stdout.splitlines()[-1]
if cause == "LOADED":
    probe.unsupported("the graph engine can be loaded here")
cause = cause.removeprefix("CAUSE ")


def compiled_call():
    torch.compile(lambda x: x + 1, backend="npu")(torch.ones(3))


def optimized_call():
    torch._dynamo.optimize("npu")(lambda x: x + 1)(torch.ones(3))


def entry_point():
    module = torch.fx.symbolic_trace(lambda x: x + 1)
    subject.npu_entry_point(module, [torch.ones(3)])


def import_by_name():
    importlib.import_module("torchair")


def from_import():
    from torchair import get_npu_backend


ways = [compiled_call, optimized_call, entry_point, import_by_name, from_import]
if probe.param("first") == "import":
    ways.reverse()
hidden = {}
for way in ways:
    for attempt in ("first", "second", "third"):
        try:
            way()
        except Exception as error:
            told = str(error)
        else:
            told = "no error"
        if cause not in told:
            hidden[way.__name__, attempt] = told
probe.equal(hidden, {}, f"tries that do not tell the cause, {cause!r}")

compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.ones(3)), torch.full((3,), 2.0), "compiled x + 1 afterwards")
