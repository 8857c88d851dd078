"""A record_stream that was captured still holds the memory back until the side stream is done with it.

If export dropped the call, the result of a single run would be right and the memory would be given away too early,
under load. So this looks at what happens when the tensor is freed: the allocator records an event on the side stream.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops"]
# timeout = 120
# releases = ">=2.13"
# ///

import torch
import torch_npu
from harness import probe

side = torch.npu.Stream()


class Lends(torch.nn.Module):
    def forward(self, x):
        x.record_stream(side)
        return x + 1


class Keeps(torch.nn.Module):
    def forward(self, x):
        return x + 1


def events_when_freed(run):
    x = torch.ones(64, 64, device="npu")
    result = run(x)
    torch.npu.synchronize()
    before = probe.device_calls().get("aclrtRecordEvent", 0)
    del x
    torch.npu.synchronize()  # what is done on the device is handed over by another thread
    after = probe.device_calls().get("aclrtRecordEvent", 0)
    probe.close(result, torch.full((64, 64), 2.0), "the result")
    return after - before


example = (torch.ones(64, 64, device="npu"),)
keeps = torch.export.export(Keeps(), example, strict=True).module()
probe.equal(events_when_freed(keeps), 0, "events recorded when a tensor is freed that was not lent")
wanted = events_when_freed(Lends())
probe.check(wanted > 0, "the model in eager mode holds the memory back", events=wanted)
lends = torch.export.export(Lends(), example, strict=True).module()
probe.equal(events_when_freed(lends), wanted, "events recorded when the tensor that the program lent is freed")
