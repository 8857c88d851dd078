"""Every order of importing torch_npu, Dynamo and Inductor ends in the same state, in which NPU tensors compile.

Each framework has its own first import. Whatever it is, setup has run once, the three backends are there, has_triton
is the NPU's, and NPU Inductor waits for its first call. The orders are the branches of a tree of forked processes,
torch at its root, so that what several orders begin with is imported once.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops"]
# timeout = 400
# releases = ">=2.9"
# ///

import importlib
import os

from harness import probe

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch

MODULES = ("torch_npu", "torch._dynamo", "torch._inductor.compile_fx")


def state():
    import torch_npu
    import torch_npu.dynamo.trace_rule as npu_rules
    from torch._dynamo.backends import registry
    from torch_npu.utils import _dynamo as npu_dynamo

    table = torch._dynamo.trace_rules.torch_name_rule_map
    rules = (
        npu_rules.torch_non_c_binding_in_graph_functions_npu,
        npu_rules.torch_c_binding_in_graph_functions_npu,
        npu_rules.skip_functions_npu,
    )
    interface = torch._dynamo.device_interface.get_interface_for_device("npu")
    found = {
        "setup has run": npu_dynamo._lazy_dynamo_setup.has_run,
        "times of each trace map": [sum(entry is each for entry in table) for each in rules],
        "devices of the interface": interface.device_count() - torch_npu.npu.device_count(),
        "backends": sorted(name for name in registry.list_backends() if name.startswith("npu")),
        "home of npu": registry.lookup_backend("npu").__module__,
        "home of has_triton": torch.utils._triton.has_triton.__module__.partition(".")[0],
        "npu in Dynamo's GPUs": "npu" in torch._dynamo.device_interface.device_interfaces,
    }
    probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree")
    probe.modules.left_to_torch("triton")
    probe.device_untouched()
    compiled = torch.compile(lambda x: x.sin() + 1, backend="aot_eager", fullgraph=True)
    x = torch.linspace(0, 1, 5)
    probe.close(compiled(x.npu()), x.sin() + 1, "compiled sin(x) + 1 on npu", rtol=1e-5)
    return found


def below(*imported):
    """The states at the leaves below the order begun with `imported`, by order."""
    if imported:
        importlib.import_module(imported[-1])
    rest = [name for name in MODULES if name not in imported]
    if not rest:
        return {" ".join(imported): state()}
    found = {}
    for name in rest:
        found |= probe.forked(below, *imported, name)
    return found


found = below()
probe.equal(len(found), 6, "orders that were tried")
expected = {
    "setup has run": True,
    "times of each trace map": [1, 1, 1],
    "devices of the interface": 0,
    "backends": ["npu", "npugraph_ex", "npugraphs"],
    "home of npu": "torch_npu.dynamo",
    "home of has_triton": "torch_npu",
    "npu in Dynamo's GPUs": True,
}
wrong = {order: each for order, each in found.items() if each != expected}
probe.check(not wrong, "each order ends in the same state", expected=expected, **wrong)
