"""A model that records events and waits for them on another stream can be exported, and the program gives its results.

Events order the streams of models that overlap copies or communication with work. A strict export refers to the
current stream by torch's generic class, so NPU events have to accept a stream of that class.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { classes = ["torch", "torch_npu"] }
# needs = ["ops"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

if probe.param("classes") == "torch_npu":
    Stream, Event, entered = torch.npu.Stream, torch.npu.Event, torch.npu.stream
elif tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 12):
    probe.unsupported("before 2.12 torch has no operators for its generic streams and events")
else:

    def Stream():
        return torch.Stream("npu")

    def Event():
        return torch.Event("npu")

    def entered(stream):
        return stream


class Waits(torch.nn.Module):
    def forward(self, x):
        doubled = x * 2
        stream, event = Stream(), Event()
        event.record()
        with entered(stream):
            event.wait()
            tripled = doubled * 3
        torch.npu.current_stream().wait_stream(stream)
        return tripled + 1


class NamesStreams(torch.nn.Module):
    def forward(self, x):
        stream, event = Stream(), Event()
        doubled = x * 2
        event.record(torch.npu.current_stream())
        stream.wait_event(event)
        with entered(stream):
            tripled = doubled * 3
        done = stream.record_event()
        done.wait(torch.npu.current_stream())
        return tripled + 1


def use(strict):
    on_cpu = torch.arange(6.0).reshape(2, 3)
    x = on_cpu.npu()
    # Before 2.12 torch itself has no place in a graph for a stream that is an argument or an event that one returns.
    for model in (Waits(), NamesStreams()) if torch.__version__ >= "2.12" else (Waits(),):
        what = f"{type(model).__name__}, strict={strict}"
        program = torch.export.export(model, (x,), strict=strict)
        result = program.module()(x)
        probe.close(result, model(x), f"{what}: the result, compared with the model's")
        probe.close(result, on_cpu * 6 + 1, f"{what}: the result, compared with the CPU's")
    probe.check(subject.dynamo_setup.has_run, "Dynamo setup has run")
    probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
    probe.modules.absent("torch_npu._inductor")


for strict in (False, True):
    probe.forked(use, strict)  # an event that takes a wrong object for a stream can end the process
