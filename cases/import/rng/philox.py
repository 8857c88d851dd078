"""philox_rand draws the same numbers for the same seed and offset on npu, and refuses the CPU, as on plain torch.

It is the stateless form of rand that a compiler puts in its place when it makes random operators functional: backward
recomputes forward's numbers from seed and offset alone. Numbers that come from somewhere else give wrong gradients
without an error; torch refuses the CPU for that reason.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = { device = ["npu", "cpu"] }
# needs = ["ops"]
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

device = torch.device(probe.param("device"))


def draw(seed, offset):
    numbers = (torch.tensor(number).to(device) for number in (seed, offset))
    return torch.ops.rngprims.philox_rand([1000], *numbers, None, device, torch.float32)[0].cpu()


if device.type == "cpu":
    with probe.raises(RuntimeError, match="cpu"):
        draw(7, 0)
else:
    first = draw(7, 0)
    torch.rand(10, device=device)  # whatever else draws in between
    probe.close(draw(7, 0), first, "numbers for the same seed and offset", rtol=0, atol=0)
    probe.check(not torch.equal(draw(8, 0), first), "another seed gives other numbers")
