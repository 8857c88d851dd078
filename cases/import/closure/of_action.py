"""A public action that needs no compiler loads none.

These are the things that programs which never compile do: save a tensor, open an autocast region, initialise a
process group, import a neighbouring part of torch. On plain torch each leaves Dynamo and Inductor out; with torch_npu
it must stay so.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.7.1"
# ///

import io

from harness import probe

import torch
import torch_npu


def autocast_region():
    with torch.autocast("npu", dtype=torch.float16):
        torch.ones(2) + 1


def save_and_load():
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    probe.close(torch.load(file), torch.ones(2), "the tensor that was saved")


def custom_op():
    def triple(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    # Registration only: calling the operator loads Dynamo on plain torch, too.
    torch.library.custom_op("conformance::triple", triple, mutates_args=())


def process_group():
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    torch.distributed.destroy_process_group()


ACTIONS = {
    "import_export": "import torch.export",
    "import_onnx": "import torch.onnx",
    "import_fsdp": "import torch.distributed.fsdp",
    "import_optim": "import torch.optim",
    "import_checkpoint": "import torch.utils.checkpoint",
    "import_flex_attention": "import torch.nn.attention.flex_attention",
    "import_symbolic_shapes": "import torch.fx.experimental.symbolic_shapes",
    "import_dtensor": "import torch.distributed.tensor",
    "autocast_region": autocast_region,
    "save_and_load": save_and_load,
    "vmap": lambda: torch.vmap(torch.sin)(torch.ones(2, 2)),
    "custom_op": custom_op,
    "is_compiling": torch.compiler.is_compiling,
    "mark_step": torch.compiler.npugraph_mark_step_begin,
    "star_import": "from torch_npu.npu import *",
    "device_count": torch.npu.device_count,
    "process_group": process_group,
    "dir_torch_npu": lambda: (dir(torch_npu), dir(torch.npu), dir(torch.compiler)),
}


def loads_no_compiler(action):
    if callable(action):
        action()
    else:
        exec(action, {})
    probe.compilers_absent()


probe.compilers_absent()
# A module that an earlier action has loaded would hide what a later one loads, so each gets a copy of the process.
probe.each(ACTIONS, loads_no_compiler, forked=True)
