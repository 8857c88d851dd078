"""Calling an Inductor wrapper with config_patches hands the patches, merged over its options, to Inductor's compile_fx.

From torch 2.12 on the wrapper takes config_patches at the call: the ahead-of-time wrapper passes it always, other
callers when they have settings for one graph only. Inductor itself is replaced by a recorder here; NPU Inductor's
loader by a stand-in.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { wrapper = ["_TorchCompileInductorWrapper", "_TorchCompileAOTInductorWrapper"], patches = [
#   "not_given", "given",
# ] }
# timeout = 120
# releases = ">=2.12"
# ///

import sys
import types

from harness import probe

import torch
import torch_npu

import torch._inductor.compile_fx

CALLS = {"not given": {}}
if probe.param("patches") == "given":
    CALLS = {
        "none": {"config_patches": None},
        "empty": {"config_patches": {}},
        "new key": {"config_patches": {"max_autotune": True}},
        "same key": {"config_patches": {"epilogue_fusion": False}},
    }

npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: None
sys.modules["torch_npu._inductor"] = npu_inductor
received = []


def compile_fx(model, _inputs, config_patches=None, **_):
    received.append(config_patches)
    return model


torch._inductor.compile_fx.compile_fx = compile_fx
wrong = {}
for name, given in CALLS.items():
    received.clear()
    wrapper = getattr(torch, probe.param("wrapper"))("default", {"epilogue_fusion": True}, None)
    model = torch.fx.symbolic_trace(torch.nn.Identity())
    expected = {**wrapper.config, **(given.get("config_patches") or {})}
    try:
        wrapper(model, [torch.ones(1)], **given)
    except TypeError as error:
        received.append(f"TypeError: {error}")
    if received != [expected]:
        wrong[name] = {"received": list(received), "expected": [expected]}
probe.check(not wrong, "compile_fx is called with the wrapper's options and the patches over them", **wrong)
