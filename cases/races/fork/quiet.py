"""A child forked before the import of torch_npu, after it or after Dynamo setup can set up and compile.

Launchers, data loaders and pre-forking servers fork at all of these moments. The child has whatever the parent had
done, and does the rest itself, once.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { fork = ["os_fork", "multiprocessing"] }
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness import probe
from cases import _subject as subject

import torch


def use():
    """Whether setup had run; then use it, and tell what is there."""
    import torch_npu

    ran = subject.dynamo_setup.has_run
    compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    result = compiled(torch.ones(2)).tolist()
    return {
        "setup had run": ran,
        "setup has run": subject.dynamo_setup.has_run,
        "compiled x + 1": result,
        "times of each trace map": subject.times_of_trace_maps(),
        "backends": sorted({"npu", "npugraph_ex", "npugraphs"} & {*torch.compiler.list_backends()}),
        "devices": importlib.import_module("torch._dynamo.device_interface")
        .get_interface_for_device("npu")
        .device_count(),
    }


def in_child():
    if probe.param("fork") == "os_fork":
        return probe.forked(use, timeout=30)
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(use).result(30)


found = {"before import torch_npu": in_child()}
import torch_npu

found["after import torch_npu"] = in_child()
probe.compilers_absent()
torch.compiler.list_backends()
found["after setup"] = in_child()
found["in the parent"] = use()

expected = {
    "setup had run": False,
    "setup has run": True,
    "compiled x + 1": [2.0, 2.0],
    "times of each trace map": [1, 1, 1],
    "backends": ["npu", "npugraph_ex", "npugraphs"],
    "devices": torch_npu.npu.device_count(),
}
done = {**expected, "setup had run": True}
after = {"before import torch_npu": expected, "after import torch_npu": expected}
probe.equal(found, {**after, "after setup": done, "in the parent": done}, "what each process finds")
