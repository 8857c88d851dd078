"""Loading a backend's entry point in a fresh process gives a callable and loads neither Dynamo nor Inductor.

Tools list and load entry points to show what is installed. Loading one brings torch_npu in, and so is bound by the
same rule as the import: no compiler, no device.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { autoload = ["0", "1"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import os
from importlib.metadata import entry_points

from harness import probe

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = probe.param("autoload")
points = {point.name: point for point in entry_points(group="torch_dynamo_backends")}
probe.modules.absent("torch", "torch_npu")

order = ["npu", "npugraph_ex", "npugraphs"]
if probe.param("autoload") == "1":
    order.reverse()  # so that another one comes first
for name in order:
    backend = points[name].load()
    probe.check(callable(backend), f"the entry point of {name} loads as a callable", backend=backend)
    probe.same(points[name].load(), backend, f"the entry point of {name} loaded again")
    probe.compilers_absent()
probe.modules.present("torch_npu")
probe.device_untouched()
