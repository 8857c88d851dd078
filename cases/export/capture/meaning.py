"""What a model says about streams, autocast and its device is captured with the meaning that it has in eager mode.

Models switch streams, lend memory to them, mix precisions, and ask for the current device or its properties. Each
must come out of export with the result of the model itself and, where there is one, of its counterpart on the CPU.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

side = torch.npu.Stream()


def record_stream(x):
    x.record_stream(side)
    return x + 1


def switch_stream(x):
    stream = torch.npu.Stream()
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        doubled = x * 2
    torch.npu.current_stream().wait_stream(stream)
    return doubled + 1


def synchronize(x):
    torch.npu.current_stream().synchronize()
    return x + 1


def autocast(x):
    with torch.autocast("npu", dtype=torch.float16):
        return torch.mm(x, x)


def autocast_of_npu(x):
    with torch.npu.amp.autocast(dtype=torch.float16):
        product = torch.mm(x, x)
    return product + torch.mm(x, x)


def current_device(x):
    return x + torch.npu.current_device() + 1


def properties(x):
    if torch.npu.get_device_properties(0).total_memory > 0:
        return x + 1
    return x - 1


def available(x):
    if torch.npu.is_available():
        return x + 1
    return x - 1


def half(x):
    return torch.mm(x.half(), x.half())


models = {
    record_stream: lambda x: x + 1,
    switch_stream: lambda x: x * 2 + 1,
    synchronize: lambda x: x + 1,
    autocast: half,
    autocast_of_npu: lambda x: half(x) + torch.mm(x, x),
    current_device: lambda x: x + 1,
    properties: lambda x: x + 1,
    available: lambda x: x + 1,
}


def module(function):
    class Model(torch.nn.Module):
        def forward(self, x):
            return function(x)

    return Model()


on_cpu = torch.arange(9.0).reshape(3, 3) / 8
x = on_cpu.npu()
before = torch.npu.current_stream()
for function, counterpart in models.items():
    name, model = function.__name__, module(function)
    for strict in (True, False):
        if function is record_stream and not strict:
            continue  # torch itself traces no stream as an operator's argument
        program = torch.export.export(model, (x,), strict=strict)
        result = program.module()(x)
        probe.close(result, model(x), f"{name}, strict={strict}: the result, compared with the model's")
        probe.close(result, counterpart(on_cpu), f"{name}, strict={strict}: the result, compared with the CPU's")
        probe.equal(torch.npu.current_stream(), before, f"{name}, strict={strict}: the current stream afterwards")
probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
probe.modules.absent("torch_npu._inductor")
