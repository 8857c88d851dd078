"""torch.compiler.reset() gives up every graph; the next calls warm up, capture and replay anew with right results.

Programs reset between models, and tests between cases. A graph that survived would replay old weights; a tree that
was left half alive would refuse the next capture.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "graph"]
# timeout = 120
# releases = ">=2.7.1"
# ///

import gc

import torch
import torch_npu
from harness import probe
from cases import _subject as subject


def since(before, name):
    return probe.device_calls().get(name, 0) - before.get(name, 0)


used = []
for life in range(1, 5):
    factor = float(life)
    compiled = torch.compile(lambda x, factor=factor: x * factor + 1, backend="npugraphs", fullgraph=True)
    before = probe.device_calls()
    for number in range(4):
        torch.compiler.npugraph_mark_step_begin()
        x = torch.randn(64, 64)
        result = compiled(x.npu())
        probe.close(result, x * factor + 1, f"result {number} in life {life}")
        del result
    probe.equal(since(before, "aclmdlRIExecuteAsync"), 3, f"replays in life {life}")
    del compiled
    torch.compiler.reset()
    gc.collect()
    torch.npu.synchronize()
    torch.npu.empty_cache()
    probe.equal(subject.MarkStepBox.mark_step_counter, 0, f"marked steps after the reset that ends life {life}")
    calls = probe.device_calls()
    probe.equal(calls.get("aclmdlRIDestroy", 0), calls.get("aclmdlRICaptureEnd", 0), f"graphs given up, of life {life}")
    used.append(torch.npu.memory_reserved())
probe.equal(used, used[:1] * 4, "memory that is reserved after each life")
