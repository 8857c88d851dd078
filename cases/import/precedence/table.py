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

from harness import probe
from cases import _subject as subject

subject.set_generator(None)

import torch
import torch_npu

import torch._inductor.config as config

seen = []
subject.fake_npu_inductor()
subject.fake_compile_fx(lambda *_, **__: seen.append(subject.generator()))
UNCHOSEN = ("unset", "empty", "default")
VALUES = (*UNCHOSEN, "mlir", "dvm")
SPELT = {"unset": None, "empty": ""}

model = torch.fx.symbolic_trace(torch.nn.Identity())
config.get_config_copy()  # from here on the NPU keys exist in every release


def judge(configured, option, environment):
    if configured != "unset":  # the first one, so that nothing has set it before
        config.npu_backend = SPELT.get(configured, configured)
    options = None if option == "unset" else {"npu_backend": SPELT.get(option, option)}
    subject.set_generator(SPELT.get(environment, environment))
    chosen = [source for source in (option, configured, environment) if source not in UNCHOSEN]

    seen.clear()
    torch._TorchCompileInductorWrapper("default", options, None)(model, [torch.ones(1)])
    # An empty variable is not a choice either; what the loader makes of "" is the default generator.
    found = ["default" if value == "" and environment == "empty" else value for value in seen]
    probe.equal(found, [*chosen, "default"][:1], "code generator that Inductor runs with")


probe.each(
    {
        f"{configured=}, {option=}, {environment=}": (configured, option, environment)
        for configured in VALUES
        for option in VALUES
        for environment in VALUES
    },
    judge,
)
