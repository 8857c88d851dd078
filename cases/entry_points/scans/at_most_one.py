"""However often something is compiled, torch_npu adds at most one scan of the packages' metadata, in all.

A scan opens the metadata of every installed distribution: tens of milliseconds, in large environments more, under
each torch.compile. The control is the same work on plain torch.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.7.1"
# ///

import importlib.metadata

from harness import probe

import torch

TIMES = 100


def scans(with_npu):
    """Scans during many compiles: (all of them, those after the first compile)."""
    counted = []
    real = importlib.metadata.distributions

    def count(*args, **kwargs):
        counted.append(1)
        return real(*args, **kwargs)

    importlib.metadata.distributions = count
    names = ["eager", "aot_eager", "inductor"]
    if with_npu:
        import torch_npu

        names += ["npugraph_ex", "npugraphs"]  # npu wants a graph engine that can be loaded
    x = torch.ones(2)
    after_first = 0
    for turn in range(TIMES):
        for name in names:
            torch.compile(lambda x: x + 1, backend=name)
        if turn == 0:
            torch.compile(lambda x: x + 1, backend="eager")(x)
            after_first = len(counted)
    torch.compiler.list_backends()
    return [len(counted), len(counted) - after_first]


plain, with_npu = probe.forked(scans, False), probe.forked(scans, True)
probe.note("scans", {"plain torch": plain[0], "with torch_npu": with_npu[0]})
probe.equal(with_npu[1], 0, "scans after the first turn")
probe.check(with_npu[0] <= plain[0] + 1, "at most one scan more than plain torch", plain=plain, with_npu=with_npu)
