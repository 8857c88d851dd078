"""transfer_to_npu can be imported first, last or after a compile; CUDA names then work on the NPU, compiled or not.

It is the one line that people add to a CUDA script, wherever it happens to land. It has to import by itself whatever
it patches, and Dynamo setup must still have run exactly once.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { order = ["first", "last", "after_compile"] }
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import warnings

from harness import probe
from cases import _subject as subject

warnings.simplefilter("ignore")
probe.triton("absent")  # beside it is another rule
match probe.param("order"):
    case "first":
        from torch_npu.contrib import transfer_to_npu
        import torch
    case "last":
        import torch
        import torch.distributed.fsdp
        import torch_npu
        from torch_npu.contrib import transfer_to_npu
    case "after_compile":
        import torch
        import torch_npu

        compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
        probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled before")
        from torch_npu.contrib import transfer_to_npu

probe.same(transfer_to_npu.torch, torch, "torch as transfer_to_npu knows it")
probe.same(torch.cuda.is_available(), True, "torch.cuda.is_available()")
probe.equal(torch.cuda.device_count(), torch.npu.device_count(), "torch.cuda.device_count()")

x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
layer = torch.nn.Linear(2, 2)
wanted = layer(x).detach()
moved = {
    "cuda()": x.cuda(),
    "to('cuda')": x.to("cuda"),
    "to(torch.device('cuda'))": x.to(torch.device("cuda", 0)),
    "device='cuda:0'": torch.zeros(2, device="cuda:0"),
    "Module.cuda()": layer.cuda().weight,
}
probe.equal({how: tensor.device.type for how, tensor in moved.items()}, dict.fromkeys(moved, "npu"), "devices")
probe.same(moved["cuda()"].is_cuda, True, "is_cuda of a moved tensor")
probe.close(moved["cuda()"] @ moved["to('cuda')"], x @ x, "product of moved tensors")
probe.close(layer(moved["cuda()"]).detach(), wanted, "output of the moved layer")
with torch.autocast("cuda", dtype=torch.float16):
    probe.equal((moved["cuda()"] @ moved["cuda()"]).dtype, torch.float16, "dtype of a product under autocast('cuda')")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    doubled = moved["cuda()"] * 2
side.synchronize()
probe.close(doubled, x * 2, "result from a side stream")


def through_cuda(value):
    return value.to("cuda") * 2 + torch.ones(2, device="cuda")


for backend in ("eager", "aot_eager"):
    compiled = torch.compile(through_cuda, backend=backend, fullgraph=True)
    result = compiled(x)
    probe.equal(result.device.type, "npu", f"device of a compiled result, {backend}")
    probe.close(result, x * 2 + 1, f"compiled result, {backend}")

probe.same(subject.dynamo_setup.has_run, True, "whether Dynamo setup has run")
probe.equal(subject.times_of_trace_maps(), [1, 1, 1], "times that each of the NPU's trace maps is in Dynamo's table")
probe.modules.absent("torch_npu._inductor")
