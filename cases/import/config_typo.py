"""A key that does not exist is refused as plain torch refuses it.

Making the NPU keys appear early must not be done by letting every name through: a misspelt key that is accepted in
silence is a setting that never takes effect.
"""

# /// script
# [tool.conformance]
# rule = "import/config/7"
# level = "must"
# matrix = { action = ["read", "assign", "patch", "option", "hasattr"], key = ["npu_backends", "no_such_key"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

from harness import probe

import torch
import torch_npu

import torch._inductor.config as config

key = probe.param("key")
match probe.param("action"):
    case "read":
        with probe.raises(AttributeError, match=f"{key} does not exist"):
            getattr(config, key)
    case "assign":
        with probe.raises(AttributeError, match=f"{key} does not exist"):
            setattr(config, key, "mlir")
    case "patch":
        with probe.raises(AttributeError, match=f"{key} does not exist"), config.patch(**{key: "mlir"}):
            pass
    case "option":
        with probe.raises(RuntimeError, match=f"Unexpected optimization option {key}"):
            torch.compile(len, backend="inductor", options={key: "mlir"})
    case _:
        probe.check(not hasattr(config, key), f"hasattr(config, {key!r}) is False")
probe.modules.absent("torch_npu._inductor")
