"""Backend npu without a loadable graph engine fails with the engine's true cause, each time, and Dynamo stays usable.

torchair needs libraries of CANN that a build machine lacks. The backend may then neither run eagerly without a word
nor leave a half-imported package that hides the cause at the second try.
"""

# /// script
# [tool.conformance]
# rule = "entry_points/torchair/1"
# level = "must"
# matrix = { way = ["compile", "optimize", "entry_point", "import"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib

import torch
import torch_npu
from harness import probe

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


def run():
    match probe.param("way"):
        case "compile":
            torch.compile(lambda x: x + 1, backend="npu")(torch.ones(3))
        case "optimize":
            torch._dynamo.optimize("npu")(lambda x: x + 1)(torch.ones(3))
        case "entry_point":
            module = torch.fx.symbolic_trace(lambda x: x + 1)
            torch_npu.dynamo._npu_backend_entrypoint(module, [torch.ones(3)])
        case "import":
            importlib.import_module("torchair")


for attempt in ("first", "second", "third"):
    with probe.raises(Exception) as caught:
        run()
    probe.check(cause in str(caught.value), f"the {attempt} try tells the cause", error=str(caught.value), cause=cause)

compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
probe.close(compiled(torch.ones(3)), torch.full((3,), 2.0), "compiled x + 1 afterwards")
