"""When another distribution announces a backend "npu" too, nothing breaks, and after torch_npu's import the NPU has it.

Both announcements are only metadata; whichever torch reads first must not decide what backend="npu" means for ever,
nor end in "duplicate name". The other distribution's folder stands before or behind on sys.path, and torch reads the
metadata before or after `import torch_npu`.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 300
# releases = ">=2.7.1"
# ///

import importlib
import itertools
import sys
from pathlib import Path

from harness import probe
from cases import _subject as subject

import torch

folder = Path.cwd() / "other"
metadata = folder / "aaa_other_npu-1.0.dist-info"
metadata.mkdir(parents=True)
(metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: aaa-other-npu\nVersion: 1.0\n")
(metadata / "entry_points.txt").write_text("[torch_dynamo_backends]\nnpu = other_npu:backend\n")
(folder / "other_npu.py").write_text("def backend(graph, inputs, **options):\n    return graph.forward\n")


def judge(place, read):
    sys.path.insert(0 if place == "before" else len(sys.path), str(folder))
    importlib.invalidate_caches()
    if read == "read_before":
        probe.check("npu" in torch.compiler.list_backends(), "npu is listed before torch_npu")
    import torch_npu
    from torch._dynamo.backends import registry

    found = registry.lookup_backend("npu")
    probe.equal(found.__module__, "torch_npu.dynamo", "home of backend npu")
    subject.register_backends()
    subject.dynamo_setup()
    probe.same(registry.lookup_backend("npu"), found, "backend npu looked up again")
    probe.check({"npu", "npugraph_ex", "npugraphs"} <= set(registry.list_backends()), "all three are listed")
    compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    probe.close(compiled(torch.ones(2)), torch.full((2,), 2.0), "compiled x + 1")


probe.each(itertools.product(("before", "behind"), ("read_before", "read_after")), judge, forked=True)
