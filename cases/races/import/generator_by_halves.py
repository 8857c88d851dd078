"""A compile that needs NPU Inductor while another thread imports it waits for the end of that import.

A server that imports torch_npu._inductor in the background while its first request compiles does this. The package
is in sys.modules from the first line of its body on; whoever takes it from there meets one by half, in which lowerings
are registered a second time or a loader is missing. The importing thread stays in the package's body until the other
one is in its compile, and for a while after.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["triton"]
# timeout = 120
# releases = ">=2.10"
# ///

import importlib
import sys
import threading

from harness import probe
from cases import _subject as subject

import torch
import torch_npu
import torch._dynamo
import torch._inductor.compile_fx

PACKAGE = "torch_npu._inductor"
PATIENCE = 4.0  # seconds after which a compile that has not ended is taken to wait for the import's end

in_body, in_compile = probe.gate("a thread is in the package's body"), probe.gate("a thread compiles")
compiled = threading.Event()
importers = set()
whole = []


def hold_up(event, arguments):
    """Where the package's body imports the first of its modules."""
    if event != "import" or not arguments[0].startswith(f"{PACKAGE}.") or in_body.is_open:
        return
    if threading.get_ident() in importers:
        in_body.arrive()
        in_compile.wait()
        compiled.wait(PATIENCE)


def compiling(*_, **__):
    """What stands for Inductor."""
    package = sys.modules.get(PACKAGE)
    whole.append(package is not None and not getattr(package.__spec__, "_initializing", False))


def import_package():
    importers.add(threading.get_ident())
    importlib.import_module(PACKAGE)


def compile_one():
    in_compile.arrive()
    try:
        torch._TorchCompileInductorWrapper("default", None, None)(model, [torch.ones(1)])
    finally:
        compiled.set()


model = torch.fx.symbolic_trace(torch.nn.Identity())
subject.fake_compile_fx(compiling)
loaded = PACKAGE in sys.modules
sys.addaudithook(hold_up)
first = probe.thread(import_package)
if not loaded:
    in_body.wait(60)
second = probe.thread(compile_one)
second.join(90)
first.join(90)
probe.equal(whole, [True], "whether NPU Inductor was whole when Inductor was called")
