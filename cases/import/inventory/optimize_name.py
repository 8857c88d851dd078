"""torch._dynamo.optimize keeps its name and home module after setup.

Tracebacks, pickled references and Dynamo's own skip rules go by the name and module of a function. A wrapper under
its own name sends a reader of a traceback to code that has no error.
"""

# /// script
# [tool.conformance]
# level = "should"
# timeout = 60
# releases = ">=2.7.1"
# ///

import pickle

import torch._dynamo
import torch_npu
from harness import probe

probe.equal(torch._dynamo.optimize.__name__, "optimize", "name of torch._dynamo.optimize")
probe.equal(torch._dynamo.optimize.__module__, "torch._dynamo.eval_frame", "module of torch._dynamo.optimize")
probe.same(pickle.loads(pickle.dumps(torch._dynamo.optimize)), torch._dynamo.optimize, "optimize after pickling")
