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

from harness import probe
from cases import _subject as subject

import torch

MODULES = ("torch_npu", "torch._dynamo", "torch._inductor.compile_fx")


def judge():
    import torch_npu
    from torch._dynamo.backends import registry

    interface = torch._dynamo.device_interface.get_interface_for_device("npu")
    probe.check(subject.dynamo_setup.has_run, "setup has run")
    probe.equal(subject.times_of_trace_maps(), [1, 1, 1], "times of each trace map")
    probe.equal(interface.device_count(), torch_npu.npu.device_count(), "devices of the interface")
    probe.check("npu" in torch._dynamo.device_interface.device_interfaces, "npu is among Dynamo's GPUs")
    backends = sorted(name for name in registry.list_backends() if name.startswith("npu"))
    probe.equal(backends, ["npu", "npugraph_ex", "npugraphs"], "backends of the NPU")
    probe.equal(registry.lookup_backend("npu").__module__, "torch_npu.dynamo", "home of backend npu")
    home = torch.utils._triton.has_triton.__module__.partition(".")[0]
    probe.equal(home, "torch_npu", "home of has_triton")
    probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree")
    probe.modules.left_to_torch("triton")
    probe.device_untouched()
    compiled = torch.compile(lambda x: x.sin() + 1, backend="aot_eager", fullgraph=True)
    x = torch.linspace(0, 1, 5)
    probe.close(compiled(x.npu()), x.sin() + 1, "compiled sin(x) + 1 on npu", rtol=1e-5)


def below(*imported):
    """Judge every order that begins with `imported`; each further import is one label, and one copy of the process."""
    if imported:
        importlib.import_module(imported[-1])
    rest = [name for name in MODULES if name not in imported]
    if rest:
        probe.each({f"then {name}": (*imported, name) for name in rest}, below, forked=True)
    else:
        judge()


below()
