"""A compile's code generator is the option's npu_backend, else the configuration's, else the environment's.

Where none of them chooses it is "default". "", "default" and nothing at all mean "not chosen" for the option and the
configuration: neither hides a choice that was made further down. Users set one of the three and forget about the
others; a wrong order compiles with a generator that they did not ask for, and nothing says so. The choice is what
TORCHINDUCTOR_NPU_BACKEND holds while Inductor runs. Inductor is replaced by a recorder and the NPU's loader by a
stand-in, so no code generator needs to be installed.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.10"
# ///

import os
import sys
import types

from harness import probe

VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
os.environ.pop(VARIABLE, None)

import torch
import torch_npu

import torch._inductor.compile_fx
import torch._inductor.config as config

npu_inductor = types.ModuleType("torch_npu._inductor")
npu_inductor._load_backend = lambda: None
sys.modules["torch_npu._inductor"] = npu_inductor
seen = []


def compile_fx(model, _inputs, **_):
    seen.append(os.environ.get(VARIABLE))
    return model


torch._inductor.compile_fx.compile_fx = compile_fx
UNCHOSEN = ("unset", "empty", "default")
VALUES = (*UNCHOSEN, "mlir", "dvm")


def spell(value):
    return "" if value == "empty" else value


model = torch.fx.symbolic_trace(torch.nn.Identity())
config.get_config_copy()  # from here on the NPU keys exist in every release
wrong = {}
for configured in VALUES:
    if configured != "unset":  # the first one, so that nothing has set it before
        config.npu_backend = spell(configured)
    for option in VALUES:
        options = None if option == "unset" else {"npu_backend": spell(option)}
        for environment in VALUES:
            os.environ.pop(VARIABLE, None)
            if environment != "unset":
                os.environ[VARIABLE] = spell(environment)
            chosen = [source for source in (option, configured, environment) if source not in UNCHOSEN]
            expected = chosen[0] if chosen else "default"

            seen.clear()
            torch._TorchCompileInductorWrapper("default", options, None)(model, [torch.ones(1)])
            # An empty variable is not a choice either; what the loader makes of "" is the default generator.
            found = ["default" if value == "" and environment == "empty" else value for value in seen]
            if found != [expected]:
                wrong[f"{option=}, {configured=}, {environment=}"] = {"found": found, "expected": [expected]}
probe.check(not wrong, "Inductor runs with the code generator of the first source that chooses one", **wrong)
