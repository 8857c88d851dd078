"""Where Inductor is called by another way than torch.compile, NPU Inductor is registered too, and results agree.

A backend of one's own hands its graph to compile_fx, torch._inductor.compile takes a
graph that was traced elsewhere, and a package made ahead of time comes from an exported program. Where only
torch.compile sets NPU Inductor up, the others end in a KeyError, or work if something else was compiled before.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { way = ["own_backend", "traced_graph", "ahead_of_time"] }
# needs = ["ops", "triton", "kernels"]
# timeout = 300
# releases = ">=2.13"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject


def program(x):
    return torch.nn.functional.gelu(x * 2) + 1


x = torch.linspace(-3, 3, 48).reshape(6, 8)
given = x.npu()
way = probe.param("way")
probe.modules.absent("torch_npu._inductor")

if way == "own_backend":

    def own_backend(graph, inputs):
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(graph, inputs)

    result = torch.compile(program, backend=own_backend, fullgraph=True)(given)
elif way == "traced_graph":
    from torch.fx.experimental.proxy_tensor import make_fx

    result = torch._inductor.compile(make_fx(program)(given), [given])(given)
else:

    class Model(torch.nn.Module):
        def forward(self, x):
            return program(x)

    package = torch._inductor.aoti_compile_and_package(torch.export.export(Model(), (given,)))
    result = torch._inductor.aoti_load_package(package)(given)

probe.close(result, program(x), "result", rtol=1e-4, atol=1e-5)
probe.check(probe.device_calls()["rtKernelLaunch"] > 0, "a kernel of Triton was launched")

from torch._inductor import config
from torch._inductor.codegen import common
from torch._inductor.utils import GPU_TYPES

filled = {
    "scheduling": common.get_scheduling_for_device("npu"),
    "wrapper of Python": common.get_wrapper_codegen_for_device("npu"),
    "wrapper of C++": common.get_wrapper_codegen_for_device("npu", cpp_wrapper=True),
    "device's operations": type(common.get_device_op_overrides("npu")),
}
homes = {what: getattr(each, "__module__", None) for what, each in filled.items()}
probe.equal({what for what, home in homes.items() if not str(home).startswith("torch_npu.")}, set(), "registries left")
probe.check("npu" in GPU_TYPES, "npu counts as a GPU for Inductor")
probe.check(hasattr(config, "npu_backend"), "the configuration has the NPU's keys")
probe.equal(subject.inductor_setup.has_run, True, "Inductor setup has run")
probe.equal(subject.inductor_is_loaded(), True, "NPU Inductor is initialised")
