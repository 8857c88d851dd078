"""Outputs of several graphs in one step live together; only a new step makes their memory free.

Without marks each call from outside is a step. With marks a step is what lies between two of them: a loop that calls
an encoder twice and a decoder on both results must see all of them right, at warm-up, capture and replay.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "graph"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from cases import _subject as subject


def encode(x):
    return (x * 2).relu() + 1


def decode(left, right):
    return left * right - 3, left + right


graphed = [torch.compile(function, backend="npugraphs", fullgraph=True) for function in (encode, decode)]


def step(functions, first, second):
    encoder, decoder = functions
    left, right = encoder(first), encoder(second)
    return (left, right, *decoder(left, right))


generations = []
for number in range(1, 7):
    torch.compiler.npugraph_mark_step_begin()
    generations.append(subject.MarkStepBox.mark_step_counter)
    first, second = torch.randn(2, 5), torch.randn(2, 5)
    results = step(graphed, first.npu(), second.npu())
    for name, result, expected in zip(
        ("first code", "second code", "product", "sum"), results, step((encode, decode), first, second), strict=True
    ):
        probe.close(result, expected, f"the {name} of step {number}")
    del results
probe.equal(len(set(generations)), 6, "distinct generations of six steps")
replays = probe.device_calls().get("aclmdlRIExecuteAsync", 0)
probe.check(replays >= 3 * 3, "three graphs are replayed in each of the later steps", replays=replays)
