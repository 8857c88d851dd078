"""A key that does not exist is refused as plain torch refuses it.

Making the NPU keys appear early must not be done by letting every name through: a misspelt key that is accepted in
silence is a setting that never takes effect.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 60
# releases = ">=2.7.1"
# ///

import itertools
import re

from harness import probe

import torch
import torch_npu

import torch._inductor.config as config


def patch(key):
    with config.patch(**{key: "mlir"}):
        pass


ACTIONS = {
    "read": lambda key: getattr(config, key),
    "assign": lambda key: setattr(config, key, "mlir"),
    "patch": patch,
    "option": lambda key: torch.compile(len, backend="inductor", options={key: "mlir"}),
    "hasattr": lambda key: hasattr(config, key),
}
REFUSALS = {"option": "RuntimeError: Unexpected optimization option {key}", "hasattr": "False"}


def refused(key, action):
    try:
        found = str(ACTIONS[action](key))
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    wanted = REFUSALS.get(action, "AttributeError: .*{key} does not exist").format(key=key)
    probe.check(re.match(wanted, found), "a key that does not exist is refused", wanted=wanted, found=found)


probe.each(itertools.product(("npu_backends", "no_such_key"), ACTIONS), refused)
probe.modules.absent("torch_npu._inductor")
