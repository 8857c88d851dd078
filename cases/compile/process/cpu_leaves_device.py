"""Compiling and running a function on the CPU leaves the NPU alone, so that a child forked later can do the same.

Programs that prepare data on the CPU do it in forked workers, often started by a thread. A compiled CPU function that
makes the process a user of the device takes memory on it, in each such process, and spoils every fork that follows.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = { shown_by = ["device_calls", "fork_in_thread"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe

x = torch.arange(3.0)


def compile_and_run():
    compiled = torch.compile(lambda x: x * 2 + 1, backend="eager", fullgraph=True)
    probe.close(compiled(x), x * 2 + 1, "a compiled function on the CPU")


compile_and_run()
if probe.param("shown_by") == "device_calls":
    probe.device_untouched()
else:
    probe.forked(compile_and_run)
    probe.thread(probe.forked, compile_and_run).join()
