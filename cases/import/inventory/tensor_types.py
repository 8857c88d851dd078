"""In a compiled function an NPU tensor's type() and the NPU's tensor classes mean what they mean outside.

Older code asks `x.type() == "torch.npu.FloatTensor"`, converts by `x.type(torch.npu.HalfTensor)`, and makes tensors by
`torch.npu.LongTensor(...)`. A type that is answered otherwise in the graph takes the other branch in silence.
double is left out: not every device has it.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import itertools

import torch
import torch_npu
from harness import probe

DTYPES = {
    "Float": torch.float32,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Int": torch.int32,
    "Short": torch.int16,
    "Char": torch.int8,
    "Byte": torch.uint8,
    "Bool": torch.bool,
}


def type_of(name):
    def function(x):
        return x.clone() if x.type() == f"torch.npu.{name}Tensor" else torch.zeros_like(x)

    return function


def converted_by_class(name):
    kind = getattr(torch.npu, f"{name}Tensor")
    return lambda x: x.type(kind)


def converted_by_name(name):
    return lambda x: x.type(f"torch.npu.{name}Tensor")


def converted_by_path(name):
    kind = getattr(torch_npu.npu, f"{name}Tensor")
    return lambda x: x.type(kind)


def made(name):
    kind = getattr(torch.npu, f"{name}Tensor")
    return lambda x: kind([1, 0, 3]) + x.to(DTYPES[name])


source = torch.tensor([1.0, 0.0, 2.0])


def judge(way, name):
    torch.compiler.reset()
    function, dtype = way(name), DTYPES[name]
    given = source.to(dtype).npu() if way is type_of else source.npu()
    expected = source.to(dtype)
    if way is made:
        expected = torch.tensor([1, 0, 3]).to(dtype) + expected
    for how in ("not compiled", "compiled"):
        run = function if how == "not compiled" else torch.compile(function, backend="eager", fullgraph=True)
        found = run(given)
        probe.equal((found.device, found.dtype), (given.device, dtype), f"device and type of the result, {how}")
        probe.close(found, expected, f"the result, {how}")


ways = (type_of, converted_by_class, converted_by_name, converted_by_path, made)
probe.each(itertools.product(ways, DTYPES), judge)
probe.modules.absent("torch_npu._inductor")
