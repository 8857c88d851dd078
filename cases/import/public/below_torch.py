"""After `import torch_npu`, modules below torch's packages that it uses can be named without an import of them.

Programs for NPUs say torch.distributed.tensor.DTensor or torch.fx.experimental.symbolic_shapes and have never imported
either, since torch_npu has always loaded them on its way. An import that loads less must answer for these names.
"""

# /// script
# [tool.conformance]
# level = "should"
# timeout = 60
# releases = "==2.13.0"
# [tool.conformance.matrix]
# name = [
#   "distributed.tensor.DTensor",
#   "distributed.fsdp.FullyShardedDataParallel",
#   "distributed.checkpoint.save",
#   "distributed.elastic.rendezvous",
#   "distributed.nn.functional",
#   "distributed.launcher.api",
#   "fx.experimental.symbolic_shapes",
#   "nn.attention.flex_attention",
# ]
# ///

import operator
import sys

import torch
import torch_npu
from harness import probe

name = probe.param("name")
try:
    found = operator.attrgetter(name)(torch)
except AttributeError as error:
    found, told = None, str(error)
else:
    told = None
probe.check(found is not None, f"torch.{name} can be had by attribute access", told=told)
parent, _, last = f"torch.{name}".rpartition(".")
probe.same(getattr(sys.modules[parent], last), found, f"torch.{name} and what its module holds")
with probe.raises(AttributeError):
    operator.attrgetter(f"{name.partition('.')[0]}.no_such_name")(torch)
