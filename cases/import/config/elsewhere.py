"""No other configuration of torch gets NPU keys, and its copy is what it is without torch_npu.

The NPU keys reach torch through a method that all configuration modules share. Dynamo's or autograd's configuration
must come out of it unchanged: these copies are hashed into cache keys and sent to workers. The control is a
fork made before `import torch_npu`.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib

from harness import probe

import torch

NAMES = ("torch._dynamo.config", "torch._functorch.config", "torch.fx.experimental._config")


def keys():
    return {name: sorted(importlib.import_module(name).get_config_copy()) for name in NAMES}


plain = probe.forked(keys)
probe.check(all(plain.values()), "plain torch's configurations have keys")

import torch_npu

import torch._inductor.config

torch._inductor.config.get_config_copy()
found = keys()
differing = {name: sorted(set(found[name]) ^ set(plain[name])) for name in NAMES if found[name] != plain[name]}
probe.equal(differing, {}, "keys by which the other configurations differ from plain torch's")
having = [name for name in NAMES if hasattr(importlib.import_module(name), "npu_backend")]
probe.equal(having, [], "other configurations that have npu_backend")
