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

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

CALLS = {
    "not_given": {"not given": {}},
    "given": {
        "none": {"config_patches": None},
        "empty": {"config_patches": {}},
        "new key": {"config_patches": {"max_autotune": True}},
        "same key": {"config_patches": {"epilogue_fusion": False}},
    },
}
received = []
subject.fake_npu_inductor()
subject.fake_compile_fx(lambda *_, config_patches=None, **__: received.append(config_patches))


def call(given):
    received.clear()
    wrapper = getattr(torch, probe.param("wrapper"))("default", {"epilogue_fusion": True}, None)
    wrapper(torch.fx.symbolic_trace(torch.nn.Identity()), [torch.ones(1)], **given)
    expected = {**wrapper.config, **(given.get("config_patches") or {})}
    probe.equal(received, [expected], "the wrapper's options and the patches over them, as compile_fx gets them")


probe.each(CALLS[probe.param("patches")], call)
