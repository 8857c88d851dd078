"""A spec found before the first import can be executed by the documented recipe, and NPU setup has then run.

module_from_spec followed by exec_module is what lazy-import helpers and plugin loaders do. Going that way must give
the same working Dynamo as the import statement, with the NPU patches in force.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { found_by = ["importlib.util", "second_look_up"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib.util
import sys

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

NAME = "torch._dynamo"
spec = importlib.util.find_spec(NAME)
if probe.param("found_by") == "second_look_up":
    spec = importlib.util.find_spec(NAME)

module = importlib.util.module_from_spec(spec)
sys.modules[NAME] = module
torch._dynamo = module
spec.loader.exec_module(module)

import torch._dynamo as imported

probe.same(imported, module, "what the import statement gives afterwards")
probe.check(subject.dynamo_setup.has_run, "NPU setup has run once the spec's loader has executed Dynamo")
probe.check(imported.device_interface.get_interface_for_device("npu") is not None, "Dynamo knows the device npu")
probe.modules.absent("torch_npu._inductor")
