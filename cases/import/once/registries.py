"""However often setup is run, reloaded, forked or repeated, torch's registries hold each NPU entry once.

A doubled entry has made Inductor see two kinds of GPU and stop with an assertion. Sizes and members of the tables that
torch keeps are taken after the first setup, and must be the same after everything that could run it again.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.10"
# ///

import importlib
import sys

import torch
import torch_npu
import torch._dynamo
import torch._inductor.utils
from harness import probe
from torch._dynamo import device_interface, trace_rules
from torch._dynamo.backends import registry
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable, constant_fold_functions
from torch._dynamo.variables.user_defined import UserDefinedClassVariable
from torch_npu.utils import _dynamo as npu_dynamo

torch.compiler.list_backends()


def tables():
    return {
        "trace maps": len(trace_rules.torch_name_rule_map),
        "trace maps, each once": len({id(each) for each in trace_rules.torch_name_rule_map}),
        "device interfaces": sorted(device_interface.device_interfaces),
        "backends": sorted(registry.list_backends(exclude_tags=None)),
        "handlers": len(TorchInGraphFunctionVariable._get_handlers()),
        "foldable functions": len(constant_fold_functions),
        "classes in graphs": len(UserDefinedClassVariable._in_graph_classes()),
        "kinds of GPU": list(torch._inductor.utils.GPU_TYPES),
        "finders": [type(each).__name__ for each in sys.meta_path if not isinstance(each, type)],
        "depth of optimize": depth(torch._dynamo.optimize),
        "autocast": repr(UserDefinedClassVariable(torch_npu.npu.amp.autocast)).partition(" ")[0],
    }


def depth(function):
    """How many times a wrapper lies around itself, the first time included; 1 for a function that is not wrapped."""
    inner = [cell.cell_contents for cell in function.__closure__ or ()]
    return 1 + max((depth(each) for each in inner if getattr(each, "__code__", None) is function.__code__), default=0)


def fails_first():
    step = npu_dynamo._run_dynamo_setup_step
    npu_dynamo._run_dynamo_setup_step = lambda *_: 1 / 0
    try:
        npu_dynamo._lazy_dynamo_setup()
    except ZeroDivisionError:
        pass
    finally:
        npu_dynamo._run_dynamo_setup_step = step
    npu_dynamo._lazy_dynamo_setup()


ways = {
    "another setup": lambda: [npu_dynamo._lazy_dynamo_setup() for _ in range(2)],
    "a setup that fails": fails_first,
    "more imports": lambda: [importlib.import_module(name) for name in ("torch_npu", "torch_npu.dynamo")],
    "other uses": lambda: [
        torch.compile(len, backend="inductor"),
        torch.compiler.reset(),
        torch_npu.npu.is_available(),
    ],
    "another registration": torch_npu.dynamo._register_backends,
    "a reload": lambda: importlib.reload(torch._dynamo),
}


def after(way):
    ways[way]()
    compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), f"compiled x + 1 after {way}")
    return tables()


first = tables()
probe.equal(first["trace maps"], first["trace maps, each once"], "trace maps, and those that differ")
probe.check("npu" in first["device interfaces"], "the NPU's interface is there")
probe.check(first["depth of optimize"] <= 1, "optimize is wrapped at most once", found=first["depth of optimize"])
changed = {}
for way in ways:
    found = probe.forked(after, way)  # which makes "a fork" part of every way
    if way == "a reload":  # whether optimize is wrapped again is another rule's question
        found["depth of optimize"] = first["depth of optimize"]
    if found != first:
        changed[way] = {name: (first[name], found[name]) for name in first if first[name] != found[name]}
probe.check(not changed, "no table has changed", **changed)
