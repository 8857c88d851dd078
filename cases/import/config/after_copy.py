"""Once get_config_copy has been called, the NPU keys are real entries: read, written, patched, saved and restored.

Caches hash the configuration, workers get it pickled, and users compare copies. An entry that only shows in the copy
would be lost on each of these ways.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.10"
# ///

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

import torch._inductor.config as config

keys = {"npu_backend": "default"}
if subject.has_shape_handling():
    keys |= {"enable_shape_handling": False, "shape_handling_configs": [], "shape_handling_dict": None}
copied = {
    key: value for key, value in config.get_config_copy().items() if key == "npu_backend" or "shape_handling" in key
}
probe.equal(copied, keys, "NPU keys in the copy")


def use(what):
    match what:
        case "read":
            probe.equal(config.npu_backend, "default", "npu_backend read as an attribute")
        case "assign":
            config.npu_backend = "mlir"
            probe.equal(config.npu_backend, "mlir", "npu_backend after the assignment")
            probe.equal(config.get_config_copy()["npu_backend"], "mlir", "npu_backend in the next copy")
        case "patch":
            with config.patch(npu_backend="dvm"):
                probe.equal(config.npu_backend, "dvm", "npu_backend inside the patch")
            probe.equal(config.npu_backend, "default", "npu_backend after the patch")
        case "save_and_load":
            config.npu_backend = "mlir"
            saved = config.save_config()
            config.npu_backend = "dvm"
            config.load_config(saved)
            probe.equal(config.npu_backend, "mlir", "npu_backend after loading the saved configuration")
        case "hash":
            before = config.get_hash()
            config.npu_backend = "mlir"
            probe.check(config.get_hash() != before, "the configuration's hash depends on npu_backend")
        case "type":
            probe.same(config.get_type("npu_backend"), str, "declared type of npu_backend")
        case _:
            probe.equal(config.save_config_portable().get("npu_backend"), "default", "npu_backend in the portable form")
    probe.modules.absent("torch_npu._inductor")


uses = ["read", "assign", "patch", "save_and_load", "hash", "portable"]
if torch.__version__ >= "2.12":  # before it was a choice of words, whose type torch does not look at
    uses.append("type")
probe.each(uses, use, forked=True)  # what one use sets, the next must not see
