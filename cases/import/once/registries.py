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

import contextlib
import importlib
import sys

import torch
import torch_npu
import torch._dynamo
import torch._inductor.utils
from harness import probe
from cases import _subject as subject
from torch._dynamo import device_interface, trace_rules
from torch._dynamo.backends import registry
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable, constant_fold_functions
from torch._dynamo.variables.user_defined import UserDefinedClassVariable

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
    with subject.replaced("setup_step", lambda *_: 1 / 0), contextlib.suppress(ZeroDivisionError):
        subject.dynamo_setup()
    subject.dynamo_setup()


WAYS = {
    "another setup": lambda: [subject.dynamo_setup() for _ in range(2)],
    "a setup that fails": fails_first,
    "more imports": lambda: [importlib.import_module(name) for name in ("torch_npu", "torch_npu.dynamo")],
    "other uses": lambda: (torch.compile(len), torch.compiler.reset(), torch_npu.npu.is_available()),
    "another registration": subject.register_backends,
    "a reload": lambda: importlib.reload(torch._dynamo),
}


def changes_nothing(way):
    WAYS[way]()
    compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")
    found = tables()
    if way == "a reload":  # whether optimize is wrapped again is another rule's question
        found["depth of optimize"] = first["depth of optimize"]
    for name, entries in first.items():
        probe.equal(found[name], entries, name)


first = tables()
probe.equal(first["trace maps"], first["trace maps, each once"], "trace maps, and those that differ")
probe.check("npu" in first["device interfaces"], "the NPU's interface is there")
probe.check(first["depth of optimize"] <= 1, "optimize is wrapped at most once", found=first["depth of optimize"])
probe.each(list(WAYS), changes_nothing, forked=True)  # which makes "a fork" part of every way
