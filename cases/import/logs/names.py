"""TORCH_LOGS takes the NPU's names in every import order, and a name that nobody has given ends in torch's own message.

torch reads the variable at the end of its own import. Where torch_npu is imported first, or autoload is off, that is
before torch_npu has registered its names, and a script that its author could debug fails at its first line elsewhere.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { name = ["npugraph", "nobodys"], order = ["torch_first", "npu_first"], autoload = ["0", "1"] }
# timeout = 60
# releases = ">=2.10"
# control = { name = ["npugraph"], order = ["torch_first"], autoload = ["0"] }
# ///

import importlib
import logging
import os

from harness import probe

name = probe.param("name")
os.environ["TORCH_LOGS"] = f"+{name}"
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = probe.param("autoload")


def load():
    order = ["torch", "torch_npu"] if probe.param("order") == "torch_first" else ["torch_npu", "torch"]
    for module in order:
        if not probe.control or module == "torch":
            importlib.import_module(module)


if name == "nobodys":
    with probe.raises(ValueError, match=r"^\s*Invalid log settings: \+nobodys") as caught:
        load()
    probe.check("graph_breaks" in str(caught.value), "the message lists what is valid")
else:
    load()
    levels = [logging.getLogger(f"torch_npu.{each}").getEffectiveLevel() for each in ("npugraph", "aclgraph")]
    probe.check(logging.DEBUG in levels, "the log is on", levels=levels)
