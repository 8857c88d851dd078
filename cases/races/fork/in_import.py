"""A child forked while another thread imports Dynamo can import it.

Python's lock of a module that is being imported has no owner in the child. torch_npu must not make this moment worse
than it is with plain PyTorch.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.7.1"
# control = true
# ///

import importlib
import os
import sys
from importlib.machinery import PathFinder

import torch
from harness import probe

if not probe.control:
    import torch_npu

parent = os.getpid()
in_import, go_on = probe.gate("a thread is in the import of Dynamo"), probe.gate("the child has ended")


class Holds:
    """Holds the import of a module in Dynamo's body; not in the finder, where all imports of the process would wait."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch._dynamo.convert_frame":
            return None
        spec = PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def wait_and_execute(module):
            if os.getpid() == parent:  # a child that imports it anew is not held
                in_import.arrive()
                go_on.wait()
            execute(module)

        spec.loader.exec_module = wait_and_execute
        return spec


def use():
    importlib.import_module("torch._dynamo")
    return torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)(torch.ones(2)).tolist()


sys.meta_path.insert(0, Holds())
thread = probe.thread(importlib.import_module, "torch._dynamo")
in_import.wait(30)
probe.equal(probe.forked(use, timeout=30), [2.0, 2.0], "compiled x + 1 in the child")
go_on.arrive()
thread.join(30)
probe.equal(use(), [2.0, 2.0], "compiled x + 1 in the parent")
