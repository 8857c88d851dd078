"""No other configuration of torch gets NPU keys, and its copy is what it is without torch_npu.

The NPU keys reach torch through a method that all configuration modules share. Dynamo's or autograd's configuration
must come out of it unchanged: these copies are hashed into cache keys and sent to workers. The control is an
interpreter without torch_npu.
"""

# /// script
# [tool.conformance]
# rule = "import/config/6"
# level = "must"
# matrix = { module = ["torch._dynamo.config", "torch._functorch.config", "torch.fx.experimental._config"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib
import json

from harness import probe

CONTROL = """
import importlib, json, sys, torch
print(json.dumps(sorted(importlib.import_module(sys.argv[1]).get_config_copy())))
"""

name = probe.param("module")
plain = probe.python(CONTROL, name, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}).stdout.splitlines()[-1]

import torch
import torch_npu

import torch._inductor.config

torch._inductor.config.get_config_copy()
config = importlib.import_module(name)
probe.equal(sorted(config.get_config_copy()), json.loads(plain), f"keys of {name}")
probe.check(not hasattr(config, "npu_backend"), f"{name} has no npu_backend")
