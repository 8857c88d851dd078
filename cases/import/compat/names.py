"""Private names that programs have come to use are still there, and a wrong name is refused by module and name.

Vendored compilers and training frameworks take them from these places. Lazily provided or not, they must be importable
without loading a compiler that the name itself does not need, and show in dir().
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { names = ["device_op_overrides", "mark_step_begin", "others"] }
# timeout = 60
# releases = ">=2.10"
# ///

import importlib

import torch
import torch_npu
from harness import probe


def refuses_a_wrong_name(module):
    with probe.raises(AttributeError) as caught:
        module.no_such_name  # noqa: B018
    told = str(caught.value)
    probe.check(module.__name__ in told and "no_such_name" in told, "the refusal says module and name", told=told)


match probe.param("names"):
    case "device_op_overrides":
        home = importlib.import_module("torch_npu.utils._inductor")
        overrides = home.NPUDeviceOpOverrides()
        probe.check(
            "npu" in overrides.set_device(1), "it writes the code that sets an NPU", code=overrides.set_device(1)
        )
    case "mark_step_begin":
        graph_tree = importlib.import_module("torch_npu.npu._graph_tree")
        state = importlib.import_module("torch_npu.npu._graph_tree_state")
        probe.same(graph_tree.MarkStepBox, state.MarkStepBox, "MarkStepBox by both names")
        counter = state.MarkStepBox.mark_step_counter
        graph_tree.mark_step_begin()
        probe.equal(state.MarkStepBox.mark_step_counter, counter - 1, "counter after a step")
    case "others":
        rng = importlib.import_module("torch_npu.utils._inductor")
        patches = {
            "patch_philox_rand_offset",
            "patch_register_philox_rand",
            "patch_register_run_and_save_rng_state_op",
            "patch_register_run_with_rng_state_op",
            "patch_rng_prims_device",
        }
        probe.equal(sorted(patches - set(dir(rng))), [], "patch functions that utils._inductor lacks")
        probe.check("npugraph_ex" in dir(torch_npu.npu), "dir() of torch_npu.npu lists npugraph_ex")
        fsdp = importlib.import_module("torch_npu.distributed.fsdp")
        probe.same(torch_npu.distributed.fsdp, fsdp, "torch_npu.distributed.fsdp")
        probe.check("fsdp" in dir(torch_npu.distributed), "dir() of torch_npu.distributed lists fsdp")
        modules = [torch_npu, torch_npu.npu, torch_npu.distributed, torch_npu.utils, torch_npu.dynamo, rng, fsdp]
        probe.each(modules, refuses_a_wrong_name)
        probe.compilers_absent()
        package = torch_npu.npu.npugraph_ex  # builds on Inductor's pattern matcher, which it loads
        probe.same(package, importlib.import_module("torch_npu.npu.npugraph_ex"), "torch_npu.npu.npugraph_ex")
        refuses_a_wrong_name(package)
